import type { LegEventData } from '../../../engine/call/signalling.ts'
import type { Agenda } from './agenda.ts'
import type { Chance } from './chance.ts'

/** The parts of its history that a peer knows. */
export interface Line {
  readonly chance: Chance
  readonly agenda: Agenda
  /** The SIP server is another process, which leaves more to us. */
  readonly isRemote: boolean
  /** Nothing new begins any more. */
  readonly isQuiet: boolean
  emit(event: LegEventData): void
  complain(what: string): void
  hasOwnOrigin(legId: string): boolean
}
