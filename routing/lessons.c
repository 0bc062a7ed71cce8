#include "routing/lessons.h"

#include "codec/base/must.h"

/* Whether another refusal has taught the same, and no caller can have written both. */
static bool is_confirmed(const struct lessons *lessons, enum learn fact,
			 const struct lesson_from *from, nsec_t now)
{
	for (size_t i = 0; i < LESSONS_MAX; i++) {
		const struct lesson_kept *kept = &lessons->kept[i];
		if (kept->until <= now || kept->fact != fact)
			continue;
		if (kept->tenant != from->tenant || (from->only_tenant && kept->body != from->body))
			return true;
	}
	return false;
}

static void learn_for_all(struct lessons *lessons, enum learn fact, nsec_t until)
{
	lessons->for_all[fact] = until;
	for (size_t i = 0; i < LESSONS_MAX; i++)
		if (lessons->kept[i].fact == fact)
			lessons->kept[i] = (struct lesson_kept){ .until = 0 };
}

/* In place of what the tenant has of it, else of what is forgotten first. */
static void learn_for_one(struct lessons *lessons, enum learn fact, const struct lesson_from *from,
			  nsec_t until)
{
	struct lesson_kept *place = &lessons->kept[0];

	for (size_t i = 0; i < LESSONS_MAX; i++) {
		struct lesson_kept *kept = &lessons->kept[i];
		if (kept->until != 0 && kept->fact == fact && kept->tenant == from->tenant) {
			place = kept;
			break;
		}
		if (kept->until < place->until)
			place = kept;
	}
	*place = (struct lesson_kept){ until, from->tenant, from->body, fact };
}

void lessons_note(struct lessons *lessons, learn_set facts, const struct lesson_from *from,
		  nsec_t now)
{
	must(from->tenant != 0);
	for (int bit = 0; bit < LEARN_COUNT; bit++) {
		const enum learn fact = (enum learn)bit;
		if ((facts & LEARN_BIT(bit)) == 0)
			continue;
		if (lessons->for_all[fact] > now || is_confirmed(lessons, fact, from, now))
			learn_for_all(lessons, fact, now + LESSON_LASTS);
		else
			learn_for_one(lessons, fact, from, now + LESSON_LASTS);
		lessons->until = now + LESSON_LASTS;
	}
}

learn_set lessons_known(const struct lessons *lessons, uint64_t tenant, nsec_t now)
{
	learn_set facts = 0;

	for (int fact = 0; fact < LEARN_COUNT; fact++)
		if (lessons->for_all[fact] > now)
			facts |= LEARN_BIT(fact);
	for (size_t i = 0; i < LESSONS_MAX; i++)
		if (lessons->kept[i].until > now && lessons->kept[i].tenant == tenant)
			facts |= LEARN_BIT(lessons->kept[i].fact);
	return facts;
}
