/** How much a proposed change can harm, by a rule that a person can check. */
export type Risk = 'low' | 'medium' | 'high'

/** More than so many calls or requests at a time are high risk, even where the change can be undone. */
const MANY = 100

/** Other figures say what is left, or describe what surrounds the target. */
const isOfAffected = (name: string): boolean =>
  /^(live_calls|calls|requests)/.test(name) && !name.endsWith('_of_set')

/**
 * High: it cannot be undone, or more than a hundred calls or requests are affected. Medium: some are affected now. Low:
 * it can be undone, and none is affected now.
 */
export function riskOf(isReversible: boolean, affected: Readonly<Record<string, number>>): Risk {
  const counts = Object.entries(affected).flatMap(([name, count]) =>
    isOfAffected(name) ? [count] : [],
  )
  const most = Math.max(0, ...counts)
  if (!isReversible || most > MANY) return 'high'
  return most > 0 ? 'medium' : 'low'
}
