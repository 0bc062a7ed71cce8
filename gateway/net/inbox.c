#include "gateway/net/inbox.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

static void lock(struct inbox *inbox)
{
	must(pthread_mutex_lock(&inbox->lock) == 0);
}

static void unlock(struct inbox *inbox)
{
	must(pthread_mutex_unlock(&inbox->lock) == 0);
}

/* Under the lock; the item is in. */
static void unlink_item(struct inbox *inbox, struct inbox_item *item)
{
	*item->before = item->next;
	if (item->next != NULL)
		item->next->before = item->before;
	else
		inbox->last = item->before;
	item->before = NULL;
}

static struct inbox_item *take_first(struct inbox *inbox)
{
	lock(inbox);
	struct inbox_item *item = inbox->first;
	if (item != NULL)
		unlink_item(inbox, item);
	else
		inbox->posted = false;
	unlock(inbox);
	return item;
}

/* What an item does may put others in, or take them back. */
static void run_all(struct net_message *message, void *owner)
{
	struct inbox *inbox = CONTAINER_OF(message, struct inbox, message);

	(void)owner;
	for (struct inbox_item *item; (item = take_first(inbox)) != NULL;)
		item->run(item);
}

void inbox_init(struct inbox *inbox, struct net_loop *loop)
{
	*inbox = (struct inbox){ .last = &inbox->first, .message.run = run_all, .loop = loop };
	must(pthread_mutex_init(&inbox->lock, NULL) == 0);
}

void inbox_put(struct inbox *inbox, struct inbox_item *item)
{
	bool post = false;

	must(item->run != NULL);
	lock(inbox);
	if (item->before == NULL) {
		item->next = NULL;
		item->before = inbox->last;
		*inbox->last = item;
		inbox->last = &item->next;
		post = !inbox->posted;
		inbox->posted = true;
	}
	unlock(inbox);
	if (post)
		net_post(inbox->loop, &inbox->message);
}

void inbox_take_back(struct inbox *inbox, struct inbox_item *item)
{
	lock(inbox);
	if (item->before != NULL)
		unlink_item(inbox, item);
	unlock(inbox);
}
