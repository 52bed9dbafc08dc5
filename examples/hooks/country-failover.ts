/**
 * Failover by country: calls to a country are tried by these carriers first, in this order, and
 * move on after statuses that would end the call otherwise. Edit the table: a saved file is loaded
 * at once. Carriers without a route for the number take no part, and the price stays the same.
 */
import type { Hooks } from 'tollgate'

const countries: Readonly<Record<string, { carriers: string[]; moveOnAfter: number[] }>> = {
  // Its networks answer 404 and 480 where a way is full.
  44: { carriers: ['south', 'north'], moveOnAfter: [404, 480] },
  49: { carriers: ['north', 'south'], moveOnAfter: [] },
}
const maxAttempts = 4

/** The longest code wins. */
function rulesOf(number: string) {
  const digits = number.replace(/^(\+|00)/, '')
  const codes = [3, 2, 1].map((length) => digits.slice(0, length))
  const code = codes.find((each) => Object.hasOwn(countries, each))
  return code === undefined ? undefined : countries[code]
}

export const onRoute: Hooks['onRoute'] = ({ to, direction, candidates }) => {
  const rules = rulesOf(to)
  if (rules === undefined || direction !== 'outbound') return
  // Other carriers come last.
  const rankOf = (name: string | null) => (rules.carriers.indexOf(name ?? '') + 100) % 100
  const ranks = candidates.map(({ name }) => rankOf(name))
  const order = [...candidates.keys()].toSorted((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0))
  return { order: order.slice(0, maxAttempts) }
}

export const onAttemptFailed: Hooks['onAttemptFailed'] = ({ to, status, candidate }) => {
  if (candidate.kind === 'gateway' && rulesOf(to)?.moveOnAfter.includes(status))
    return { failover: true }
}
