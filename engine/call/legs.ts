/** The legs as call control sees them: those of the user agent, or a media gate before them. */
import type { CallRefusal } from './cdr/end-reason.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import type { Callee } from './dialing/outgoing-invite.ts'
import type { InviteToSend, LegCommand, LegEventData, SdpOwner } from './signalling.ts'
import type { LegSignalling } from './user-agent/leg-signalling.ts'
import type { ReceivedRequest } from './user-agent/received-request.ts'

export interface Legs extends Pick<LegSignalling, 'forget' | 'save' | 'restore' | 'answerBye'> {
  /** `isOtherInstance`: an instance of the installation has sent it, as its token proves. */
  receive(legId: string, request: ReceivedRequest, isOtherInstance?: boolean): void
  invite(legId: string, invite: InviteToSend, near: string | undefined, about: InviteFacts): void
  perform(command: LegCommand): void
  /** Whether an SDP for the peer of the leg waits for a media relay. */
  isHeld?(legId: string): boolean
}

/** Facts about an INVITE that the user agent does not need. */
export interface InviteFacts {
  /** The leg whose offer it contains. */
  readonly sdpOwner: SdpOwner
  readonly callee: Callee
}

/**
 * An event of a leg, an INVITE that a gate has withheld, or the end of a call whose answer it
 * cannot pass.
 */
export type GateEvent =
  | LegEventData
  | Extract<MachineEvent, { readonly type: 'withheld' }>
  | { readonly type: 'stop'; readonly callUuid: string; readonly end: CallRefusal }

/** A layer between call control and the legs of the user agent. */
export interface LegGate {
  /** `legs` creates the legs behind the gate. `emit` takes the events of the gate. */
  join(
    legs: (emit: (event: LegEventData) => void) => Legs,
    emit: (event: GateEvent) => void,
    /** A command failed by a bug, after its step. */
    onFault: (legId: string, error: unknown) => void,
  ): Legs
}
