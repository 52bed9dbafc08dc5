/** The legs as call control performs on them: the user agent's, or a media gate before it. */
import type { Callee } from './dialing/outgoing-invite.ts'
import type { SdpOwner, LegCommand, LegEventData } from './signalling.ts'
import type { LegSignalling } from './user-agent/leg-signalling.ts'
import type { ReceivedRequest } from './user-agent/requests.ts'
import type { InviteToSend } from './user-agent/user-agent.ts'

export interface Legs extends Pick<LegSignalling, 'forget' | 'save' | 'restore' | 'answerBye'> {
  /** `isOtherNode`: a node of the installation has sent it, as its token proves. */
  receive(legId: string, request: ReceivedRequest, isOtherNode?: boolean): void
  invite(
    legId: string,
    invite: Omit<InviteToSend, 'near'>,
    near: string | undefined,
    about: InviteFacts,
  ): void
  perform(command: LegCommand): void
  /** Whether something that the leg is to be told waits for a media relay. */
  isHeld?(legId: string): boolean
}

/** What the user agent does not need to know of an INVITE. */
export interface InviteFacts {
  /** Whose offer it has. */
  readonly sdpOwner: SdpOwner
  readonly callee: Callee
}

/** Beside what happens to a leg: what became of an INVITE that a gate has held up. */
export type GateEvent =
  | LegEventData
  | {
      readonly type: 'withheld'
      readonly legId: string
      readonly why: string
      readonly end: {
        readonly kind: 'refused'
        readonly status: number
        readonly reason: string
        readonly code: string
      }
    }

/** What stands between call control and its legs. */
export interface LegGate {
  /** `legs` makes those behind the gate, whose events go to `emit`. */
  join(
    legs: (emit: (event: LegEventData) => void) => Legs,
    emit: (event: GateEvent) => void,
    /** A bug has kept something from being performed, after its step. */
    onFault: (legId: string, error: unknown) => void,
  ): Legs
}
