/** Tells the outcome of a call in words: for lists, and as a sentence on its own page. */
import type { CallRecordView, CallStatus } from '../api/views.ts'
import { plural } from '../parts/format.ts'
import { denialPhrase } from './denial-words.ts'

type Ended = Pick<
  CallRecordView,
  'disposition' | 'sip_code' | 'hangup_cause' | 'hangup_by' | 'denial_text' | 'denial_code'
> &
  Partial<Pick<CallRecordView, 'attempts' | 'carrier' | 'direction' | 'node'>>

/** Colour, sign and word: the colour alone says nothing. */
export const results = {
  ANSWERED: { tone: 'good', text: '✓ answered' },
  'NO ANSWER': { tone: 'plain', text: '– no answer' },
  BUSY: { tone: 'plain', text: '– busy' },
  CANCELED: { tone: 'plain', text: '– cancelled' },
  FAILED: { tone: 'bad', text: '✕ failed' },
  CONGESTION: { tone: 'bad', text: '✕ congestion' },
} as const

const causes: Readonly<Partial<Record<string, string>>> = {
  NORMAL_CLEARING: 'Hung up',
  UNALLOCATED_NUMBER: 'The called number does not exist',
  NO_USER_RESPONSE: 'The called party did not respond',
  NO_ANSWER: 'Nobody answered',
  NUMBER_CHANGED: 'The called number has changed',
  EXCHANGE_ROUTING_ERROR: 'The call went in a circle',
  INVALID_NUMBER_FORMAT: 'The called number is not complete',
  USER_BUSY: 'The called party was busy',
  ORIGINATOR_CANCEL: 'The caller hung up before it was answered',
  INCOMPATIBLE_DESTINATION: 'The two sides have no codec in common',
  NETWORK_OUT_OF_ORDER: 'The network of the other side is out of order',
  DESTINATION_OUT_OF_ORDER: 'The other side is out of order',
  RECOVERY_ON_TIMER_EXPIRE: 'The other side answered too late',
  CALL_REJECTED: 'The call was rejected',
  OUTGOING_CALL_BARRED: 'The caller may not call there',
  SWITCH_CONGESTION: 'The other side is overloaded',
  NORMAL_TEMPORARY_FAILURE: 'The other side could not take the call',
  MEDIA_TIMEOUT: 'No sound was received any more',
}

/** Causes that are proposed where calls are searched. */
export const hangupCauses: readonly string[] = Object.keys(causes)

/** Why a call was not answered, or did not end as usual; empty: nothing is to be told. */
export function causeText(call: Ended): string {
  const { denial_code: code, denial_text: denial, hangup_cause: cause, disposition } = call
  const phrase = code === null ? undefined : denialPhrase(code)
  if (phrase !== undefined) return capital(phrase)
  // The remedy is on the page of the call.
  if (denial !== null) return denial.split(': ', 1)[0]?.replace(/\.$/, '') ?? denial
  if (disposition === 'ANSWERED') return cause === 'NORMAL_CLEARING' ? '' : hangupText(cause)
  const { attempts = [] } = call
  const last = attempts.at(-1)
  if ((disposition === 'FAILED' || disposition === 'CONGESTION') && last !== undefined)
    return attemptText(last, partyOf(call))
  return causes[cause] ?? `${readable(cause)} (${call.sip_code})`
}

/** `UNALLOCATED_NUMBER` in words. */
export const hangupText = (cause: string): string => causes[cause] ?? readable(cause)

/** Who was called last. A call from a carrier to a node or a phone has the carrier as well. */
const partyOf = ({ node, carrier, direction }: Ended): string =>
  node != null
    ? 'The PBX node'
    : carrier != null && direction === 'outbound'
      ? 'The carrier'
      : 'The phone'

const attemptText = (
  { status, reason }: CallRecordView['attempts'][number],
  party: string,
): string =>
  status === 0 ? `${party} did not answer in time` : `${party} answered ${status} ${reason}`

const readable = (cause: string): string => capital(cause.replaceAll('_', ' ').toLowerCase())

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

const parties = {
  caller: 'the caller hung up',
  callee: 'the called party hung up',
  system: 'Tollgate ended it',
  api: 'an operator or a program ended it',
} as const

interface Told {
  readonly status: CallStatus
  readonly record: CallRecordView | undefined
  /** Name of the payer. */
  readonly customer: string | undefined
  /** Name of the node or the carrier that took the call. */
  readonly through: string | undefined
}

/** How it went, in one or two sentences. */
export function callText({ status, record, customer, through }: Told): string {
  const { caller_id_number: from, destination_number: to } = status
  const by = through === undefined ? '' : ` through ${through}`
  if (status.disposition === null) return `${from} calls ${to}: the call is in progress.`
  if (status.disposition !== 'ANSWERED') {
    const cause = causeText({ ...status, ...record })
    const { denial_text: denial } = status
    return `${from} called ${to}${by}. ${endOf(denial ?? cause)}`
  }
  const cost = record?.currency == null ? '' : ` for ${record.cost_exact} ${record.currency}`
  const payer = customer === undefined || cost === '' ? '' : `, paid by ${customer}`
  const end = record === undefined ? '' : `; ${parties[record.hangup_by]}`
  const odd = causeText({ ...status, ...record })
  const talk = plural(status.billsec, 'second')
  return `${from} talked to ${to}${by}: ${talk}${cost}${payer}${end}. ${endOf(odd)}`.trimEnd()
}

const endOf = (sentence: string): string => sentence.replace(/([^.])$/, '$1.')
