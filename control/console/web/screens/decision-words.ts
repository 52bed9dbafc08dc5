/** A decision of the engine as a sentence. */
import type { TraceDecision } from '../api/views.ts'
import { plural } from '../parts/format.ts'
import { hangupText } from './call-words.ts'

type Detail = Readonly<Record<string, unknown>>

type Decision = Pick<TraceDecision, 'what' | 'detail'>

export function decisionText({ what, detail }: Decision): string {
  switch (what) {
    case 'recognized':
      return `The caller is ${origins[text(detail, 'origin')] ?? text(detail, 'origin')}.`
    case 'charged':
      return chargedText(detail)
    case 'routed':
      return routedText(detail)
    case 'tried':
      return `${text(detail, 'destination')} was tried: ${answerText(detail)}.`
    case 'transfer':
      return `Transfer to ${text(detail, 'destination')}: ${text(detail, 'state')}.`
    case 'ended':
      return endedText(detail)
    case 'reported':
      return reportedText(detail)
    case 'hook':
      return hookText(detail)
    case 'verified':
      return verifiedText(detail)
    case 'ruled':
      return ruledText(detail)
    case 'redirected':
      return redirectedText(detail)
    case 'signed':
      return signedText(detail)
    default:
      return `${what}: ${JSON.stringify(detail)}`
  }
}

/** Rules have the numbers of the form, from 1. */
function ruledText(detail: Detail): string {
  const rules = Array.isArray(detail['rules']) ? detail['rules'].map(String) : []
  const [carrier, isIn] = [text(detail, 'carrier'), detail['direction'] === 'in']
  const which = `${rules.length === 1 ? 'rule' : 'rules'} ${rules.join(', ')} of ${carrier}`
  return `The INVITE ${isIn ? `from ${carrier} was` : `to ${carrier} is`} changed by ${which}.`
}

function redirectedText(detail: Detail): string {
  const list = (name: string): readonly string[] =>
    Array.isArray(detail[name]) ? detail[name].map(String) : []
  const [gateways, passed] = [list('gateways'), list('passedOver')]
  const whys = [...new Set(passed)].map((why) => redirectWhys[why] ?? why).join('; ')
  const others = passed.length === 0 ? '' : ` Passed over: ${whys}.`
  const to = gateways.length === 0 ? 'nowhere' : `to ${gateways.join(', ')}`
  return `${text(detail, 'carrier')} has redirected the call ${to}.${others}`
}

const redirectWhys: Readonly<Record<string, string>> = {
  unknown_gateway: 'no gateway that the routes of the caller lead to',
  number_blocked: 'a route blocks the number',
  blocked_by_carrier: 'the carrier does not take the number',
  dearer: 'another number, which costs more or has no price',
  other_number: 'an emergency is called by its own number alone',
  no_number: 'no number',
  loop: 'the call has been there',
  too_many: 'more than five',
}

const text = (detail: Detail, name: string): string => {
  const value = detail[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

const origins: Readonly<Record<string, string>> = {
  trusted: 'a trusted source',
  extension: 'an extension that has proved its password',
  carrier: 'a carrier, by its address',
  node: 'a node of a dispatcher set',
  proxy: 'a proxy that has authenticated its users',
  unknown: 'unknown',
}

function chargedText(detail: Detail): string {
  const payer = payerText(detail)
  const prefix = text(detail, 'rate_prefix')
  const price = prefix === '' ? '' : ` at the rate of prefix ${prefix}`
  switch (detail['verdict']) {
    case 'granted': {
      const seconds = text(detail, 'granted_seconds')
      const funds = fundsText(detail)
      const admitted =
        funds === '' ? 'Charging admits the call' : `Charging admits the call: ${funds}`
      return seconds === ''
        ? `${admitted}; ${payer} may talk without limit${price}.`
        : `${admitted}; ${payer} is granted ${plural(Number(seconds), 'second')} at ` +
            `first${price && `,${price}`}.`
    }
    case 'denied': {
      const funds = text(detail, 'code') === 'insufficient_funds' ? fundsText(detail) : ''
      const why = funds === '' ? '' : ` (${funds})`
      return `Charging refuses the call${why}. ${text(detail, 'denial_text')}`
    }
    case 'overloaded':
      return 'Charging refuses the call: it could not be stored, so it could not be billed.'
    default:
      return 'The external charging service does not answer.'
  }
}

/** The customer by its name; by its number, where the name may not be seen. */
function payerText(detail: Detail): string {
  const name = text(detail, 'customer')
  const id = text(detail, 'customer_id')
  if (name !== '') return name
  return id === '' ? 'the caller' : `customer ${id}`
}

/** `the wallet of acme has 0.00 USD`; empty: it is not known, or may not be seen. */
function fundsText(detail: Detail): string {
  const balance = text(detail, 'balance')
  const currency = text(detail, 'currency')
  if (balance === '' || currency === '') return ''
  const available = text(detail, 'available')
  const rest = available === balance ? '' : `, of which ${available} ${currency} can be spent`
  return `the wallet of ${payerText(detail)} has ${balance} ${currency}${rest}`
}

function routedText(detail: Detail): string {
  const candidates = Array.isArray(detail['candidates']) ? detail['candidates'].map(String) : []
  if (candidates.length === 0) {
    return `There is no route. ${text(detail, 'denial_text')}`.trimEnd()
  }
  return (
    `${directions[text(detail, 'direction')] ?? 'A'} call; to try, in this order: ` +
    `${candidates.join(', ')}.`
  )
}

const directions: Readonly<Record<string, string>> = {
  inbound: 'An inbound',
  outbound: 'An outbound',
  internal: 'An internal',
}

function answerText(detail: Detail): string {
  const status = detail['status']
  const answer = `${text(detail, 'status')} ${text(detail, 'reason')}`.trim()
  return status === 0 ? 'no answer in time' : `it answered ${answer}`
}

const parties: Readonly<Record<string, string>> = {
  caller: 'the caller',
  callee: 'the called party',
  system: 'the platform',
  api: 'an operator or a program, by the API',
}

/** The decision of the operator's own code, by the names of its fields. */
export function hookText(detail: Detail): string {
  const who = [text(detail, 'hook'), text(detail, 'by')].filter((each) => each !== '')
  const name = `The hook ${who.join(' of ')}`
  const failed = text(detail, 'failed')
  const goesOn =
    detail['fallback'] === 'refuse' ? 'The call is refused.' : 'The call goes on without it.'
  if (failed !== '') return `${name} has no effect: ${failed}. ${goesOn}`
  return `${name} has decided: ${JSON.stringify(detail['decision'])}.`
}

function verifiedText(detail: Detail): string {
  const [why, grade] = [text(detail, 'why'), text(detail, 'attestation')]
  const attested = grade === '' ? '' : `, with attestation ${grade}`
  if (detail['verification'] === 'passed') return `The caller is proved by ${why}${attested}.`
  const how = detail['verification'] === 'failed' ? 'wrong' : 'not proved'
  return `The number of the caller is ${how}: ${why}.`
}

function signedText(detail: Detail): string {
  const [carrier, grade] = [text(detail, 'carrier'), text(detail, 'attestation')]
  const why = text(detail, 'why')
  if (why !== '') return `The call goes to ${carrier} without a signature: ${why}.`
  return grade === ''
    ? `The call goes to ${carrier} with the signatures of its caller, and ours as who forwards.`
    : `The call to ${carrier} is signed with attestation ${grade}.`
}

/** A phone's report, as in the record. */
function reportedText(detail: Detail): string {
  const quality: Detail = Object(detail['heard']) as Detail
  const by = parties[text(detail, 'by')] ?? 'a party'
  const mos = text(quality, 'mos')
  return `The phone of ${by} has reported what it heard: ${mos === '' ? 'no MOS' : `MOS ${mos}`}.`
}

function endedText(detail: Detail): string {
  const by = parties[text(detail, 'hangup_by')] ?? text(detail, 'hangup_by')
  const denial = text(detail, 'denial_text')
  const cause = text(detail, 'hangup_cause')
  const why = denial === '' && cause !== 'NORMAL_CLEARING' ? `${hangupText(cause)}.` : denial
  const how =
    detail['disposition'] === 'ANSWERED'
      ? `Ended by ${by} after ${plural(Number(text(detail, 'billsec')), 'second')} of talk`
      : `Not answered: refused with ${text(detail, 'sip_code')} by ${by}`
  return `${how}. ${why}`.trimEnd()
}
