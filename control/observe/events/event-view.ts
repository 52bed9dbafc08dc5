/** Events as the API shows them. */
import { z } from 'zod'
import { worstOf } from '../../../schema/records/stored-record.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { EngineEvent, EventsPort } from '../../../schema/contracts/engine.ts'
import { type EndedCall, recordingView } from '../../../schema/contracts/calls.ts'
import { timeOrNull } from '../../http/view-fields.ts'
import { shownFigures } from '../../http/quality-figures.ts'
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

/** A tenant does not see the price of a call that a customer of the platform pays. */
const hasHiddenPrice = (event: EngineEvent): boolean =>
  event.type === 'call.answered' && event.call.isPaidByPlatform

/** The data of an event for a reader of this tenant. */
export const dataFor = (
  { data, isPricedByPlatform }: Pick<SharedEvent, 'data' | 'isPricedByPlatform'>,
  tenantId: number | null,
): SharedEvent['data'] =>
  tenantId !== null && isPricedByPlatform === true ? { ...data, price: null } : data

/** The view for a reader of this tenant. */
export const eventViewFor = (
  event: EngineEvent,
  tenantId: number | null,
  ocs: PriceSource | undefined,
): SharedEvent['data'] => dataFor(shared(event, ocs), tenantId)

/** `ocs`: knows the price of a call; undefined: another one charges. */
function eventView(event: EngineEvent, ocs: PriceSource | undefined) {
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
    case 'carrier.quality_low':
    case 'carrier.quality_restored': {
      const { carrierId, carrier, routeId, route, until, fallen } = event.quality
      return {
        at,
        carrier_id: carrierId,
        carrier,
        route_id: routeId,
        route,
        until: timeOrNull(until),
        below: fallen === null ? [] : [...fallen.faults],
        figures: fallen === null ? null : shownFigures(fallen.figures),
        restored_by: event.by,
      }
    }
    case 'registration': {
      const { extension, domain, contacts } = event
      const status = contacts > 0 ? 'registered' : 'unregistered'
      return { at, extension, domain, status, contacts }
    }
    case 'proposal.created':
    case 'proposal.decided':
      return { at, proposal_id: event.proposalId, tool: event.tool, state: event.state }
    case 'payment.alert':
      return { at, alert_id: event.alertId, kind: event.kind }
    case 'recording.ready':
      return { at, ...recordingView(event.recording) }
    case 'recording.failed':
      return { at, call_uuid: event.callUuid, reason: event.reason }
    case 'call.ended': {
      const { record } = event
      return {
        at,
        call_uuid: record.callUuid,
        start_stamp: timeToText(record.startedAt),
        caller_id_number: record.callerNumber,
        destination_number: record.calledNumber,
        direction: record.direction,
        disposition: record.disposition,
        billsec: record.billsec,
        sip_code: record.sipCode,
        hangup_cause: record.hangupCause,
        hangup_by: record.hangupBy,
        ...worstOf(record.quality),
        ...(record.tags && { tags: record.tags }),
        ...proofIn(record),
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
        ...(call.tags && { tags: call.tags }),
        ...(event.type === 'call.answered' && { price: priceOf(ocs, call.callUuid) }),
        ...(call.transfer && { transfer: transferView(call) }),
      }
    }
  }
}

/** Empty: there are no signatures, and nobody has looked for them. */
const proofIn = ({ verification, verstat, attestation }: EndedCall) => ({
  ...(verification && { verification, verstat }),
  ...(attestation && { attestation }),
})

/**
 * Where a reader of events is. One instance's log is named by an id, `<epoch>-<sequence>`. With
 * several instances an id has one for each of them, `<node>/<id>,<node>/<id>`, so that a reader
 * goes on at any instance, behind what it has of each.
 */

/** The id of the last event by instance. */
export type EventPosition = ReadonlyMap<string, string>

/** Instead of an instance: the id is that of an installation with one. */
export const ONLY_INSTANCE = ''

/** Longer ids are none of ours: 64 instances. */
export const MAX_ID_LENGTH = 6_000

export const positionText = (position: EventPosition): string =>
  [...position].map(([instance, id]) => `${encodeURIComponent(instance)}/${id}`).join(',')

/** Leaves unreadable parts out: their instances count as unknown to the reader. */
export function parsePosition(text: string): EventPosition {
  if (text.length > MAX_ID_LENGTH) return new Map()
  if (!text.includes('/')) return new Map([[ONLY_INSTANCE, text]])
  const parts = text.split(',').flatMap((part): [string, string][] => {
    const [, instance = '', id = ''] =
      /^([\w.~!*'()%-]{1,200})\/([0-9a-z]{1,12}-\d{1,15})$/.exec(part) ?? []
    const name = decoded(instance)
    return name === undefined || name === '' ? [] : [[name, id]]
  })
  return new Map(parts)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Events between instances: as the API shows them, with what it takes to pass them on. */
const sequence = z.int().min(0)

export const sharedEvent = z.strictObject({
  sequence,
  /** Milliseconds UTC. */
  at: z.number(),
  tenantId: z.int().nullable(),
  type: z.string().regex(/^[a-z._]{1,40}$/),
  data: z.record(z.string(), z.unknown()),
  isPricedByPlatform: z.literal(true).optional(),
})

/**
 * An event of an instance. Only the instance of a call knows its price, so the instance of the
 * event makes `data`.
 */
export type SharedEvent = z.output<typeof sharedEvent>

/** The first line of a stream: its log, and behind which event it goes on. */
export const feedHead = z.strictObject({ epoch: z.string().max(12), after: sequence })

/** The stored events of a log. */
export const logPart = z.strictObject({
  epoch: z.string().max(12),
  last: sequence,
  /** Nothing between the position and the first of them is missing. */
  isComplete: z.boolean(),
  events: z.array(sharedEvent).max(50_000),
})

export type LogPart = z.output<typeof logPart>

export const shared = (event: EngineEvent, ocs: PriceSource | undefined): SharedEvent => ({
  sequence: event.sequence,
  at: event.at,
  tenantId: event.tenantId,
  type: event.type,
  data: eventView(event, ocs),
  ...(hasHiddenPrice(event) && { isPricedByPlatform: true }),
})

/**
 * The events of a log after `id` that a tenant (null: all tenants) may see; `id` undefined: all
 * stored ones.
 */
export function partOf(
  events: EventsPort,
  {
    after: id,
    tenantId,
  }: { readonly after?: string | undefined; readonly tenantId: number | null },
  ocs: PriceSource | undefined,
): LogPart {
  const known = id === undefined ? undefined : sequenceOf(events, id)
  const visible = events.after(known ?? 0).filter((event) => isVisible(event, tenantId))
  return {
    epoch: events.epoch.toString(36),
    last: events.last,
    isComplete: known !== undefined && known >= events.forgotten(tenantId),
    events: visible.map((event) => shared(event, ocs)),
  }
}
