/** How the call of a supervisor is known again. */
import type { CallStart } from '../inbound/incoming-invite.ts'

/** The called number of a supervisor's call: this, and the uuid of the call that it is about. */
export const SPIED = 'spy:'

/**
 * The call of a supervisor: no INVITE says `api`, and no other call of the API has such a destination. Only the
 * supervisor may hear it: it is not recorded, and no party takes the supervisor's place.
 */
export const isOfSupervisor = ({ sourceAddress, calledNumber }: CallStart): boolean =>
  sourceAddress === 'api' && calledNumber.startsWith(SPIED)
