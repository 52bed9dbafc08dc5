/** What happens in the engine, numbered; the last events are kept in memory. */
import type { ActiveCall, EndedCall } from './calls.ts'
import type { NodeState } from './dispatcher.ts'
import type { RecordedCall } from './recordings.ts'
import type { ProposalState } from '../tables/changes.ts'

/** What happened; `tenantId` null: it concerns the whole platform. */
export type EngineHappening = { readonly tenantId: number | null } & (
  | { readonly type: LiveCallEvent; readonly call: ActiveCall }
  | { readonly type: 'call.ended'; readonly record: EndedCall }
  | { readonly type: 'recording.ready'; readonly recording: RecordedCall }
  | {
      readonly type: 'recording.failed'
      readonly callUuid: string
      /** One line for the operator. */
      readonly reason: string
    }
  | {
      readonly type: 'node.down' | 'node.up'
      readonly setId: number
      readonly destination: string
      readonly state: NodeState
    }
  | {
      /** A process of the installation. */
      readonly type: 'node.lost' | 'node.recovered' | 'node.fenced'
      readonly node: string
      readonly address: string
      readonly epoch: number
    }
  | {
      readonly type: 'relay.down' | 'relay.up' | 'relay.restarted'
      /** `host:port`. */
      readonly relay: string
    }
  | {
      readonly type: 'storage.failed' | 'storage.recovered'
      /** Of `storage.failed`, one line for the operator. */
      readonly reason: string | null
    }
  | {
      readonly type: 'registration'
      readonly extension: string
      readonly domain: string
      /** How many phones the extension has now. */
      readonly contacts: number
    }
  | ProposalHappening
)

/** A change was proposed, or what becomes of it is known. */
export interface ProposalHappening {
  readonly type: 'proposal.created' | 'proposal.decided'
  readonly proposalId: string
  readonly tool: string
  readonly state: ProposalState
}

/** About a live call. */
export type LiveCallEvent =
  | ('call.started' | 'call.ringing' | 'call.answered')
  | ('call.transferring' | 'call.transferred' | 'call.transfer_failed')
  | ('recording.started' | 'recording.stopped')

export type EngineEvent = EngineHappening & {
  /** Ascending by one. */
  readonly sequence: number
  /** Milliseconds UTC. */
  readonly at: number
}

export interface EventsPort {
  /** Milliseconds UTC at which numbering began. */
  readonly epoch: number
  /** Sequence of the newest event; 0: none yet. */
  readonly last: number
  /** Sequence of this tenant's (null: the platform's) newest event that is no longer kept; 0: all are kept. */
  forgotten(tenantId: number | null): number
  /** The kept events after `sequence`, oldest first. */
  after(sequence: number): readonly EngineEvent[]
}
