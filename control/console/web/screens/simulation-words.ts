/** The result of a simulated call, in sentences. */
import type { Simulation } from '../api/views.ts'

/** The fields of all kinds of payment, in one type. */
type Payment = Pick<Simulation['payment'], keyof Simulation['payment']>
type PassedOver = Simulation['passed_over'][number]

export function verdictText({ verdict, sip_code: status, denial_text: text }: Simulation): string {
  switch (verdict) {
    case 'goes_on':
      return 'The call would go on: the first destination is called, and its answer decides.'
    case 'dropped':
      return 'The call would get no answer: its source is banned.'
    case 'refused':
      return `The call would be refused with ${status ?? 0}. ${text ?? ''}`.trimEnd()
  }
}

const kinds: Readonly<Record<Simulation['source']['kind'], string>> = {
  trusted: 'a trusted address',
  carrier: 'carrier',
  node: 'node',
  proxy: 'a proxy that authenticates its users',
  extension: 'extension',
  unknown: 'unknown',
}

export const sourceText = ({ kind, name }: Simulation['source']): string =>
  name === null ? kinds[kind] : `${kinds[kind]} ${name}`

export function payerText({ kind, customer, code }: Payment): string {
  if (kind === 'free') return 'none: the call is free'
  if (kind === 'not_asked') return 'not looked up: the call ends before that'
  if (kind === 'elsewhere') return 'known to the other charging system only'
  return customer ?? (code === null ? 'none: the call is free' : 'none, or not shown')
}

export function priceText({ rate }: Payment): string {
  if (rate === null) return 'none, or not shown'
  const fee = Number(rate.connect_fee_exact) > 0 ? `, ${rate.connect_fee_exact} to connect` : ''
  return (
    `${rate.rate_per_minute_exact} ${rate.currency} a minute${fee}, prefix ` +
    (rate.prefix || 'any')
  )
}

export const orderText: Readonly<Record<Simulation['order'], string>> = {
  fixed: 'Every such call tries them in this order.',
  turn: 'The next call tries them in this order; others come first in turn.',
  drawn: 'The order is drawn for each call; this is the most probable one.',
  call_id: 'The Call-ID chooses: this is the order of this one.',
}

export const whyText: Readonly<Record<PassedOver['why'], string>> = {
  drained: 'taken out of service by an operator',
  out_of_service: 'out: it does not answer',
  node_limit: 'it has as many calls as allowed',
  other_caller: 'the route is for another customer or tenant',
  after_block: 'it comes after a route that blocks',
  no_carrier: 'its carrier is inactive, or takes no outbound calls',
  blocked_by_carrier: 'its carrier does not take calls to this number',
  carrier_limit: 'its carrier has as many calls as allowed',
  number_blocked: 'a route blocks the number that its gateway would get',
  number_stripped: 'it strips the whole number',
  inbound_only: 'it takes no outbound calls',
  gateway_down: 'it does not answer',
  leads_to_platform: 'it leads back to this platform',
  no_carrier_price: 'its carrier has no price for this number',
  below_margin: 'the call would leave too little, or its cost is not known',
}

type Hunting = NonNullable<Simulation['candidates'][number]['hunting']>

/** How a call goes on when the carrier does not take it. */
export function huntingText(rules: Hunting): string {
  const { next_on: next, stop_on: stop, max_attempts: attempts, max_seconds: seconds } = rules
  const said = [
    next !== null && (next.length === 0 ? 'no answer leads on' : `leads on: ${next.join(', ')}`),
    stop.length > 0 && `ends it: ${stop.join(', ')}`,
    attempts !== null && `at most ${attempts} attempts`,
    seconds !== null && `at most ${seconds} s`,
    rules.redirects === 'follow' && 'redirections are followed',
    ...rules.answers.map(({ match, status }) => `${match} is shown as ${status}`),
  ]
  return said.filter((each) => each !== false).join('; ')
}
