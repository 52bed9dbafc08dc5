/** Events as the API shows them. */
import { worstOf } from '../../../schema/call-quality.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { EngineEvent, EventsPort } from '../../../schema/contracts/engine-events.ts'
import { recordingView } from '../../../schema/rules/recording-view.ts'
import { priceOf, type PriceSource, transferView } from '../../calls/active-call-view.ts'

/** Identifies an event across restarts, so that a reader can continue after it. */
export const eventId = ({ epoch }: Pick<EventsPort, 'epoch'>, sequence: number): string =>
  `${epoch.toString(36)}-${sequence}`

/** Returns the sequence number of an id; undefined when it is from another process. */
export function sequenceOf(
  { epoch, last }: Pick<EventsPort, 'epoch' | 'last'>,
  id: string,
): number | undefined {
  const [start, sequence = ''] = id.split('-')
  if (start !== epoch.toString(36) || !/^\d{1,15}$/.test(sequence)) return undefined
  return Number(sequence) <= last ? Number(sequence) : undefined
}

export const isVisible = (event: EngineEvent, tenantId: number | null): boolean =>
  tenantId === null || event.tenantId === tenantId

/** `ocs`: knows the price of a call; undefined: another one charges. */
export function eventView(event: EngineEvent, ocs: PriceSource | undefined) {
  const at = timeToText(event.at)
  switch (event.type) {
    case 'node.down':
    case 'node.up':
      return { at, set_id: event.setId, destination: event.destination, state: event.state }
    case 'node.lost':
    case 'node.recovered':
    case 'node.fenced':
      return { at, node: event.node, address: event.address, epoch: event.epoch }
    case 'relay.down':
    case 'relay.up':
    case 'relay.restarted':
      return { at, relay: event.relay }
    case 'storage.failed':
    case 'storage.recovered':
      return { at, ...(event.reason !== null && { reason: event.reason }) }
    case 'registration': {
      const { extension, domain, contacts } = event
      const status = contacts > 0 ? 'registered' : 'unregistered'
      return { at, extension, domain, status, contacts }
    }
    case 'proposal.created':
    case 'proposal.decided':
      return { at, proposal_id: event.proposalId, tool: event.tool, state: event.state }
    case 'recording.ready':
      return { at, ...recordingView(event.recording) }
    case 'recording.failed':
      return { at, call_uuid: event.callUuid, reason: event.reason }
    case 'call.ended': {
      const { record } = event
      return {
        at,
        call_uuid: record.callUuid,
        caller_id_number: record.callerNumber,
        destination_number: record.calledNumber,
        direction: record.direction,
        disposition: record.disposition,
        billsec: record.billsec,
        sip_code: record.sipCode,
        hangup_cause: record.hangupCause,
        hangup_by: record.hangupBy,
        ...worstOf(record.quality),
      }
    }
    case 'call.started':
    case 'call.ringing':
    case 'call.answered':
    case 'call.transferring':
    case 'call.transferred':
    case 'call.transfer_failed':
    case 'recording.started':
    case 'recording.stopped':
    default: {
      const { call } = event
      return {
        at,
        call_uuid: call.callUuid,
        caller_id_number: call.callerNumber,
        destination_number: call.calledNumber,
        direction: call.direction,
        node: call.node,
        instance: call.instance,
        carrier: call.carrier,
        state: call.state,
        start_stamp: timeToText(call.startedAt + call.stampOffsetMs),
        answer_stamp:
          call.answeredAt === null ? null : timeToText(call.answeredAt + call.stampOffsetMs),
        customer_id: call.customerId,
        ...(event.type === 'call.answered' && { price: priceOf(ocs, call.callUuid) }),
        ...(call.transfer && { transfer: transferView(call) }),
      }
    }
  }
}
