/** A carrier with its status from the engine. */
import { timeToText } from '../../../schema/columns.ts'
import type { CarrierRegistrationStatus } from '../../../schema/contracts/registrations.ts'
import type { EnginePort } from '../../../schema/contracts/engine-port.ts'
import type { CarrierView } from './carrier-view.ts'
import { probedStatusView } from '../probed-status.ts'

export interface LiveCarrierView extends CarrierView {
  /** Null when the carrier requires no registration. */
  readonly registration: CarrierRegistrationStatus['state'] | null
  readonly status: {
    /** Active, and at least one gateway does not fail its probes. */
    readonly is_usable: boolean
    readonly active_calls: number
    readonly registration: ReturnType<typeof detailsOf> | null
  }
}

export function withLiveStatus(
  carrier: CarrierView,
  { trunks, calls }: Pick<EnginePort, 'trunks' | 'calls'>,
): LiveCarrierView {
  const registration = trunks.registrationOf(carrier.id)
  const gateways = carrier.gateways.map((gateway) => {
    const status = trunks.gatewayStatus(gateway.id)
    return { ...gateway, status: status === undefined ? null : probedStatusView(status) }
  })
  const isReachable = gateways.some(({ status }) => status === null || status.state === 'active')
  return {
    ...carrier,
    gateways,
    registration: registration?.state ?? null,
    status: {
      is_usable: carrier.is_active && isReachable,
      active_calls: calls.countByCarrier(carrier.id),
      registration: registration === undefined ? null : detailsOf(registration),
    },
  }
}

/** With the calls that `more` knows of it, by id. */
export function withMoreCalls(
  carrier: CarrierView | LiveCarrierView,
  more: (id: number) => number,
): CarrierView {
  if (!('status' in carrier)) return carrier
  const { status } = carrier
  const counted = { ...status, active_calls: status.active_calls + more(carrier.id) }
  return { ...carrier, status: counted } as CarrierView
}

const detailsOf = ({
  registrar,
  expiresAt,
  nextAttemptAt,
  lastAnswer,
}: CarrierRegistrationStatus) => ({
  registrar,
  expires_at: expiresAt === null ? null : timeToText(expiresAt),
  next_attempt_at: nextAttemptAt === null ? null : timeToText(nextAttemptAt),
  last_answer: lastAnswer && { ...lastAnswer, at: timeToText(lastAnswer.at) },
})
