/** Which commands carry a session description, and whether it is an offer or an answer (RFC 3264). Pure. */
import { silentAnswer } from '../../call/sdp/third-party.ts'
import type { LegCommand } from '../../call/signalling.ts'
import type { MediaLeg } from './media-leg.ts'

export type Role = 'offer' | 'answer'

export type Describing = Extract<
  LegCommand,
  {
    readonly type:
      'accept' | 'acknowledge' | 'acknowledgeReinvite' | 'answerRequest' | 'request' | 'respond'
  }
>

/** The description that a command carries; undefined: none, or nothing that is one. */
export function descriptionIn(command: LegCommand): string | undefined {
  switch (command.type) {
    case 'accept':
    case 'acknowledge':
      return command.sdp || undefined
    case 'acknowledgeReinvite':
      return command.body || undefined
    case 'respond':
    case 'answerRequest':
    case 'request':
      return command.body !== undefined && isDescription(command.body) ? command.body : undefined
    default:
      return undefined
  }
}

export const isDescription = (body: string | undefined): body is string =>
  body !== undefined && /^v=0\r?\n/.test(body)

/** Something that is no description may hold one, such as `multipart/mixed`. */
export const hasBody = (command: Describing): boolean =>
  Boolean('sdp' in command ? command.sdp : command.body)

export const isDescribing = (command: LegCommand): command is Describing =>
  'describes' in command && command.describes !== undefined

export const roleOf = (command: Describing, leg: MediaLeg): Role => {
  switch (command.type) {
    case 'request':
      return 'offer'
    case 'accept':
    case 'respond':
      return leg.hasOffered ? 'answer' : 'offer'
    case 'answerRequest':
      return command.requestId === leg.late ? 'offer' : 'answer'
    case 'acknowledge':
    case 'acknowledgeReinvite':
    default:
      return 'answer'
  }
}

/** The command with another description. */
export function withDescription<C extends LegCommand>(command: C, sdp: string | undefined): C {
  return 'sdp' in command ? { ...command, sdp: sdp ?? '' } : { ...command, body: sdp }
}

/** With a description that lets no media flow, in the streams of `sdp`: where the one of the peer cannot be given. */
export const silenced = (command: Describing, sdp: string): LegCommand => ({
  ...withDescription(command, sdp === '' ? undefined : silentAnswer(sdp)),
  describes: undefined,
})
