/** A live call as the API shows it: the five fields of SPECIFICATION.md §2.5 first. */
import type { Tariff, OcsPort } from '../../schema/contracts/charging.ts'
import { billedSeconds } from '../../schema/contracts/call-record.ts'
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type { NodeState } from '../../schema/contracts/engine.ts'
import type { Principal } from '../auth/principal.ts'
import { notFound } from '../http/api-error.ts'
import type { Platform } from '../http/platform.ts'

/** Whether what belongs to this tenant is there for the principal. */
export const isVisible = (
  owner: number | null,
  { tenantId }: Pick<Principal, 'tenantId'>,
): boolean => tenantId === null || owner === tenantId

/** A live call of this instance; throws 404 when the principal may see none. */
export function liveCallOf(
  { calls }: Pick<Platform['engine'], 'calls'>,
  uuid: string,
  principal: Principal,
): ActiveCall {
  const call = calls.find(uuid)
  if (call === undefined || !isVisible(call.tenantId, principal)) throw notFound('call')
  return call
}

/** Prepares the view of any number of calls at one time. */
export function activeCallView(
  { engine, steadyNow, ocs }: Pick<Platform, 'engine' | 'steadyNow' | 'ocs'>,
  { tenantId }: Pick<Principal, 'tenantId'>,
) {
  const present = steadyNow()
  const stateOf = nodeStates(engine)
  return (call: ActiveCall) => {
    const { callUuid, startedAt, answeredAt, stampOffsetMs, node, peers } = call
    const seconds = answeredAt === null ? 0 : billedSeconds(present - answeredAt)
    return {
      uuid: callUuid,
      call_uuid: callUuid,
      caller_id_number: call.callerNumber,
      destination_number: call.calledNumber,
      duration_seconds: Math.max(0, Math.floor((present - (answeredAt ?? startedAt)) / 1_000)),
      state: call.state,
      direction: call.direction,
      start_stamp: timeToText(startedAt + stampOffsetMs),
      answer_stamp: answeredAt === null ? null : timeToText(answeredAt + stampOffsetMs),
      set_id: call.setId,
      node,
      instance: call.instance,
      node_state: node === null ? null : (stateOf.get(node) ?? null),
      carrier: call.carrier,
      caller_address: peers.caller,
      callee_address: peers.callee,
      customer_id: call.customerId,
      tags: call.tags ?? null,
      transfer: transferView(call),
      recording: engine.recordings.isRecording(callUuid),
      ...costOf(tenantId !== null && call.isPaidByPlatform ? undefined : ocs, callUuid, seconds),
    }
  }
}

export type ActiveCallView = ReturnType<ReturnType<typeof activeCallView>>

/**
 * The cost if the call ended now; null when another OCS charges the call, or the price is not for
 * the reader.
 */
function costOf(ocs: Platform['ocs'], callUuid: string, seconds: number): CostView {
  if (ocs === undefined) return { cost: null, cost_exact: null, currency: null, price: null }
  const { costMicros, currency, tariff } = ocs.costSoFar(callUuid, seconds)
  return {
    cost: moneyToNumber(costMicros),
    cost_exact: moneyToDecimal(costMicros),
    currency,
    price: tariff && priceView(tariff),
  }
}

interface CostView {
  readonly cost: number | null
  readonly cost_exact: string | null
  readonly currency: string | null
  readonly price: PriceView | null
}

/** Enough to compute the cost of any duration. */
export const priceView = (tariff: Tariff) => ({
  currency: tariff.currency,
  connect_fee: moneyToDecimal(tariff.connectFeeMicros),
  first_increment: tariff.firstIncrementSeconds,
  first_rate_per_minute: moneyToDecimal(tariff.firstRatePerMinuteMicros),
  increment: tariff.incrementSeconds,
  rate_per_minute: moneyToDecimal(tariff.ratePerMinuteMicros),
  decimals: tariff.decimals,
  rounding: tariff.rounding ?? 'up',
})

export type PriceView = ReturnType<typeof priceView>

/** The price of one call; null: it is free, or another OCS charges it. */
export function priceOf(ocs: PriceSource | undefined, callUuid: string): PriceView | null {
  const tariff = ocs?.costSoFar(callUuid, 0).tariff ?? null
  return tariff && priceView(tariff)
}

export type PriceSource = Pick<OcsPort, 'costSoFar'>

/** Lists states by destination. Calls on a node in maintenance continue until they end. */
const nodeStates = ({ dispatcher }: Pick<Platform['engine'], 'dispatcher'>) =>
  new Map<string, NodeState>(
    dispatcher.status().flatMap(({ nodes }) => nodes.map((node) => [node.destination, node.state])),
  )

/** The part of a call in a transfer; null when it has none. */
export function transferView({ transfer }: Pick<ActiveCall, 'transfer'>) {
  if (transfer === undefined) return null
  const { state, callUuid, destination, sipCode } = transfer
  return { state, call_uuid: callUuid, destination, sip_code: sipCode }
}

export const exampleCallUuid = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'
