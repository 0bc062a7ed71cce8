/* list.h - a list through members of its elements, in both directions.
 *
 * An element is on one list at a time for each link that it has, and must not move while it is. */
#ifndef CODEC_BASE_LIST_H
#define CODEC_BASE_LIST_H

#include "codec/base/must.h"

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised: on no list. */
struct list_link {
	struct list_link *next, *before;
};

/* From the first to the last; list_init before anything else. */
struct list {
	struct list_link head; /* before the first and behind the last */
};

static inline void list_init(struct list *list)
{
	list->head.next = list->head.before = &list->head;
}

static inline bool list_is_empty(const struct list *list)
{
	return list->head.next == &list->head;
}

static inline bool list_has(const struct list_link *link)
{
	return link->next != NULL;
}

/* NULL: it is empty. */
static inline struct list_link *list_first(const struct list *list)
{
	return list_is_empty(list) ? NULL : list->head.next;
}

/* The one behind it; NULL: it is the last. */
static inline struct list_link *list_next(const struct list *list, const struct list_link *link)
{
	return link->next == &list->head ? NULL : link->next;
}

/* As the last; it must be on none. */
static inline void list_add(struct list *list, struct list_link *link)
{
	must(!list_has(link));
	link->next = &list->head;
	link->before = list->head.before;
	list->head.before->next = link;
	list->head.before = link;
}

/* From the list that it is on. */
static inline void list_remove(struct list_link *link)
{
	must(list_has(link));
	link->next->before = link->before;
	link->before->next = link->next;
	link->next = link->before = NULL;
}

#endif
