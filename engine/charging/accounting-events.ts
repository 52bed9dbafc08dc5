/**
 * Events for accounting webhooks, in the API's spelling. They are written in the transaction that
 * makes them true.
 */
import type { OpenCall, CallRecord } from '../../schema/contracts/call-record.ts'
import { bothDirections, worstOf } from '../../schema/records/stored-record.ts'
import { marginMicros } from '../../schema/records/margin.ts'
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { AuthorizationRequest, MoneyMove } from '../../schema/contracts/charging.ts'
import { denialText, storedDenialText } from '../../schema/contracts/denials.ts'
import type { ConfidentialData, EventSink, OutgoingEvent } from '../../schema/contracts/engine.ts'
import type { Terms } from './customers/customer.ts'
import type { Authorization } from './authorization/authorize.ts'
import type { Reservation } from './authorization/reservations.ts'
import type { Charge } from './settlement/settlement.ts'

/** Each method returns an event; undefined: no endpoint listens. */
export class AccountingEvents {
  readonly #sink: Pick<EventSink, 'wants'> | undefined

  /** Without a sink there is no event. */
  constructor(sink: Pick<EventSink, 'wants'> | undefined) {
    this.#sink = sink
  }

  /** The event of an authorization. */
  verdict(
    request: AuthorizationRequest,
    authorization: Authorization,
    at: number,
  ): OutgoingEvent | undefined {
    const sink = this.#sink
    if (sink === undefined || authorization.kind === 'overloaded') return undefined
    const isGranted = authorization.kind === 'granted'
    const payer = isGranted ? authorization.reservation.payer : authorization.payer
    const type = isGranted ? 'call.authorized' : 'call.denied'
    const tenantId = payer?.terms.tenantId ?? null
    if (!sink.wants(type, tenantId)) return undefined
    const call = {
      call_uuid: request.callUuid,
      caller_id_number: request.caller,
      destination_number: request.callee,
      customer_id: payer?.terms.customerId ?? null,
      at: timeToText(at),
      ...(request.tags && { tags: request.tags }),
    }
    const data = isGranted
      ? { ...call, ...grantOf(authorization.reservation) }
      : {
          ...call,
          denial_code: authorization.code,
          denial_text: denialText(authorization.code, authorization.detail),
          rate_prefix: authorization.ratePrefix,
        }
    return { type, tenantId, data }
  }

  answered(call: OpenCall): OutgoingEvent | undefined {
    // Its end has a price that is the platform's.
    const tenantId = call.isPaidByPlatform === true ? null : call.tenantId
    if (this.#sink?.wants('call.answered', tenantId) !== true) return undefined
    const data = { ...partiesOf(call), answer_stamp: timeToText(call.answeredAt) }
    return { type: 'call.answered', tenantId, data }
  }

  ended(record: CallRecord, { payer, tariff, costMicros }: Charge): OutgoingEvent | undefined {
    const tenantId = payer === undefined ? record.tenantId : payer.terms.tenantId
    if (this.#sink?.wants('call.ended', tenantId) !== true) return undefined
    const data = {
      ...partiesOf(record),
      customer_id: record.customerId ?? payer?.terms.customerId ?? null,
      answer_stamp: record.answeredAt === null ? null : timeToText(record.answeredAt),
      end_stamp: timeToText(record.endedAt),
      billsec: record.billsec,
      disposition: record.disposition,
      sip_code: record.sipCode,
      hangup_cause: record.hangupCause,
      hangup_by: record.hangupBy,
      denial_code: record.denialCode,
      denial_text: storedDenialText(record.denialCode, record.denialText ?? null),
      recovered: record.isRecovered,
      ...worstOf(record.quality),
      media_quality: record.quality ? bothDirections(record.quality) : null,
      rate_prefix: tariff?.prefix ?? record.ratePrefix,
      ...amountOf('cost', costMicros),
      currency: tariff?.currency ?? record.currency,
      ...notBought,
    }
    const confidential = boughtOf(record, costMicros, data.currency)
    return { type: 'call.ended', tenantId, data, ...(confidential && { confidential }) }
  }

  /** A top-up, an adjustment or a refund. */
  moved(terms: Terms, move: MoneyMove, balanceMicros: bigint): OutgoingEvent | undefined {
    const { tenantId, customerId, currency } = terms
    const type = move.kind === 'topup' ? 'wallet.topped_up' : 'wallet.adjusted'
    if (this.#sink?.wants(type, tenantId) !== true) return undefined
    const { kind, amountMicros, ref, actor, note } = move
    const data = {
      customer_id: customerId,
      kind,
      ...amountOf('amount', amountMicros),
      ...amountOf('balance', balanceMicros),
      currency,
      ref,
      actor,
      note,
    }
    return { type, tenantId, data }
  }

  /** A balance fell below its threshold. */
  lowBalance(terms: Terms, beforeMicros: bigint, afterMicros: bigint): OutgoingEvent | undefined {
    const { lowBalanceMicros } = terms
    if (beforeMicros < lowBalanceMicros || afterMicros >= lowBalanceMicros) return undefined
    return this.#wallet('wallet.low_balance', terms, afterMicros)
  }

  /** Reported once until a credit ends the depletion. */
  depleted(terms: Terms, balanceMicros: bigint): OutgoingEvent | undefined {
    return this.#wallet('wallet.depleted', terms, balanceMicros)
  }

  #wallet(
    type: 'wallet.low_balance' | 'wallet.depleted',
    { tenantId, customerId, currency, lowBalanceMicros, creditLimitMicros }: Terms,
    balanceMicros: bigint,
  ): OutgoingEvent | undefined {
    if (this.#sink?.wants(type, tenantId) !== true) return undefined
    const data = {
      customer_id: customerId,
      ...amountOf('balance', balanceMicros),
      low_balance_threshold: moneyToNumber(lowBalanceMicros),
      credit_limit: moneyToNumber(creditLimitMicros),
      currency,
    }
    return { type, tenantId, data }
  }
}

/** A change has left nothing to spend, and there was something before. */
export function isDepletion(
  { creditLimitMicros }: Terms,
  beforeMicros: bigint,
  afterMicros: bigint,
): boolean {
  const credit = BigInt(creditLimitMicros)
  return beforeMicros + credit > 0n && afterMicros + credit <= 0n
}

/** `null` seconds: unlimited. */
const grantOf = ({ tariff, grantedSeconds, amountMicros }: Reservation) => ({
  rate_prefix: tariff?.prefix ?? null,
  granted_seconds: grantedSeconds === Infinity ? null : grantedSeconds,
  ...amountOf('reserved', amountMicros),
  currency: tariff?.currency ?? null,
})

const partiesOf = (
  call: Pick<
    CallRecord,
    | ('callUuid' | 'direction' | 'callerNumber' | 'calledNumber')
    | ('customerId' | 'startedAt' | 'node' | 'instance' | 'carrier' | 'tags')
    | ('verification' | 'verstat' | 'attestation')
  >,
) => ({
  call_uuid: call.callUuid,
  direction: call.direction,
  caller_id_number: call.callerNumber,
  destination_number: call.calledNumber,
  customer_id: call.customerId,
  start_stamp: timeToText(call.startedAt),
  node: call.node,
  instance: call.instance ?? null,
  carrier: call.carrier,
  ...(call.tags && { tags: call.tags }),
  ...(call.verification && { verification: call.verification, verstat: call.verstat }),
  ...(call.attestation && { attestation: call.attestation }),
})

/** For endpoints that do not own the carrier, and calls without one. */
const notBought = {
  carrier_cost: null,
  carrier_cost_exact: null,
  carrier_currency: null,
  carrier_prefix: null,
  margin: null,
  margin_exact: null,
}

/** Carrier's cost and margin, for the platform and the owner of the carrier. */
function boughtOf(
  { carrierCost }: CallRecord,
  costMicros: number,
  currency: string | null,
): ConfidentialData | undefined {
  if (carrierCost === undefined) return undefined
  const { costMicros: bought, currency: boughtIn, prefix, tenantId } = carrierCost
  const margin = marginMicros({
    cost_micros: costMicros,
    currency,
    carrier_cost_micros: bought,
    carrier_currency: boughtIn,
  })
  const data = {
    ...amountOf('carrier_cost', bought),
    carrier_currency: boughtIn,
    carrier_prefix: prefix,
    ...(margin !== null && amountOf('margin', margin)),
  }
  return { tenantId, data }
}

const amountOf = <Name extends string>(name: Name, micros: number | bigint) =>
  ({ [name]: moneyToNumber(micros), [`${name}_exact`]: moneyToDecimal(micros) }) as const
