/** A re-INVITE of our own: one leg is told whose media it gets from now on (RFC 3725, RFC 3261 §14). */
import type { Deadlines } from '../deadlines.ts'
import type { Leg } from '../legs/leg.ts'
import type { Acknowledge, SipResponse } from '../srf/drachtio.ts'

export interface ReinviteDeps {
  readonly deadlines: Deadlines
  /** Milliseconds UTC. */
  readonly now: () => number
}

export type Reinvited =
  /** `leg.media` is its answer; or its offer, which `acknowledge` has to answer. */
  | { readonly kind: 'answered'; readonly acknowledge?: Acknowledge | undefined }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

const MAX_TRIES = 6

/** RFC 3261 §14.1: who made the Call-ID waits for the other one to have its way first. */
const retryAfterMs = { uac: 2_100, uas: 1_000 }

const noOffer: Reinvited = { kind: 'refused', status: 488, reason: 'Not Acceptable Here' }
const gone: Reinvited = { kind: 'refused', status: 481, reason: 'Call/Transaction Does Not Exist' }

/** Without `offer` the peer makes one. `done` comes exactly once, unless the connection to the SIP server is lost. */
export function reinvite(
  leg: Leg,
  offer: string | undefined,
  deps: ReinviteDeps,
  done: (result: Reinvited) => void,
  tries = 1,
): void {
  const again = (): void => {
    const at = deps.now() + retryAfterMs[leg.dialog.type]
    deps.deadlines.at(at, () => reinvite(leg, offer, deps, done, tries + 1))
  }
  if (leg.isOver) return done(gone)
  if (!leg.isAcknowledged && tries < MAX_TRIES) return again()
  leg.keepOrigin()
  const options = { method: 'INVITE', headers: {}, body: leg.tell(offer), noAck: !offer }
  return leg.dialog.request(options, (error, response, acknowledge) => {
    if (response && response.status < 200) return undefined
    if (!response) return isUnknownDialog(error) || tries >= MAX_TRIES ? done(gone) : again()
    if (isGlare(response) && tries < MAX_TRIES) return again()
    if (response.status >= 300) {
      const { status, reason } = response
      return done({ kind: 'refused', status, reason })
    }
    if (!offer && !response.body) {
      acknowledge?.()
      return done(noOffer)
    }
    if (response.body) leg.media = response.body
    return done({ kind: 'answered', acknowledge: offer ? undefined : acknowledge })
  })
}

/** Any other complaint of the server is a re-INVITE that is under way in this dialog. */
const isUnknownDialog = (error: unknown): boolean =>
  error instanceof Error && /unable to find dialog/i.test(error.message)

/** The peer has an INVITE of its own under way, in one direction or the other (§14.2). */
const isGlare = ({ status, headers }: SipResponse): boolean =>
  status === 491 || (status === 500 && headers['retry-after'] !== undefined)
