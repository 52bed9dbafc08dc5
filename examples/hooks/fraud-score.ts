/**
 * Fraud score: a payer that suddenly calls as robots do is stopped. Ten minutes of its calls give
 * points for many calls, for neighbouring numbers, and for a country that it has not called before.
 * FRAUD_LIMIT points refuse a call; each call has its score as a tag.
 */
import type { Hooks } from 'tollgate'

const limit = Number(process.env.FRAUD_LIMIT ?? 100)
const windowMs = 600_000
const maxPayers = 20_000
const maxCalls = 200
type Call = { readonly at: number; readonly number: number }
/** By payer, the longest unseen first. */
const payers = new Map<string, { calls: Call[]; readonly countries: Set<string> }>()

export const onInvite: Hooks['onInvite'] = ({ from, to, customer, source, isSimulated }) => {
  const digits = to.replace('+', '')
  if (isSimulated || source.kind === 'carrier' || !/^\d{7,15}$/.test(digits)) return
  const number = Number(digits)
  // Two digits tell most countries apart.
  const country = digits.slice(0, digits.startsWith('1') ? 4 : 2)
  const payer = String(customer?.id ?? from)
  const { calls, countries } = payers.get(payer) ?? { calls: [], countries: new Set() }
  const recent = calls.filter(({ at }) => at > Date.now() - windowMs).slice(-maxCalls)
  const neighbours = recent.filter((call) => Math.abs(call.number - number) <= 10)
  const isNewCountry = countries.size > 0 && !countries.has(country)
  const score = recent.length + 10 * neighbours.length + (isNewCountry ? 30 : 0)
  payers.delete(payer)
  if (payers.size >= maxPayers) payers.delete(payers.keys().next().value ?? '')
  payers.set(payer, { calls: [...recent, { at: Date.now(), number }], countries })
  const tags = { fraud_score: String(score) }
  if (score >= limit) return { refuse: { status: 403, reason: 'Too many unusual calls' }, tags }
  countries.add(country)
  return { tags }
}
