/**
 * Dialogs that a subscription holds open (RFC 6665): they end when it does, or when it is not
 * renewed.
 */
import type { AppMessage } from '../application.ts'
import type { OutboundRequest, OutboundRequests } from './uac/outbound-request.ts'
import type { DialogTable } from '../dialog/dialog-table.ts'
import { Dialog } from '../dialog/dialog.ts'
import { type Flow, isReliable } from '../flow.ts'
import { parseExpires } from '../../../schema/sip/fields.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { Deadlines } from '../transaction/deadlines.ts'

/** RFC 6665 §3.1.1 leaves the default to the event package; an hour is the usual one. */
const DEFAULT_SECONDS = 3_600
/** A subscription that is not renewed for a day is forgotten: a peer may ask for 136 years. */
const MAX_SECONDS = 86_400
/** After the end one more NOTIFY may come (§4.1.2.3). */
const GRACE_MS = 32_000

export class Subscriptions {
  readonly #dialogs: DialogTable
  readonly #outbound: OutboundRequests
  readonly #deadlines: Deadlines

  constructor(dialogs: DialogTable, outbound: OutboundRequests, deadlines: Deadlines) {
    this.#dialogs = dialogs
    this.#outbound = outbound
    this.#deadlines = deadlines
  }

  /** Lets the subscription live for so long, at most a day, unless it is renewed again. */
  renew(dialog: Dialog, seconds: number, now: number): void {
    const at = now + Math.min(seconds, MAX_SECONDS) * 1_000 + GRACE_MS
    dialog.renewSubscription(at, this.#deadlines, () => this.#dialogs.remove(dialog), now)
  }

  /** A NOTIFY in the dialog passed: it says how long the subscription still lives. */
  notified(dialog: Dialog, notify: SipMessage, now: number): void {
    const value = notify.get('Subscription-State') ?? ''
    const seconds = /;\s*expires\s*=\s*(\d{1,9})/i.exec(value)?.[1]
    if (seconds !== undefined) this.renew(dialog, Number(seconds), now)
  }

  /**
   * A NOTIFY may overtake the answer to what it belongs to, and begins the dialog then (RFC 6665
   * §4.4.1). Undefined: it belongs to nothing that is being asked for.
   */
  dialogOfEarlyNotify(notify: SipMessage, flow: Flow): Dialog | undefined {
    if (notify.method !== 'NOTIFY') return undefined
    const outbound = this.#outbound.subscribing(notify.callId, notify.toTag)
    if (outbound === undefined || outbound.dialog !== undefined) return undefined
    const dialog = dialogFrom(outbound, notify, flow)
    outbound.formed(dialog)
    this.#dialogs.add(dialog)
    return dialog
  }
}

/** The response grants what it says, or else what the request asked for. */
export const grantedSeconds = (request: SipMessage | undefined, response: AppMessage): number =>
  parseExpires(response.get('Expires') ?? request?.get('Expires') ?? '') ?? DEFAULT_SECONDS

/** Header lines of a 2xx to a SUBSCRIBE: the notifier may shorten what was asked (§4.2.1.1). */
export function grantLines(request: SipMessage, lines: string): string {
  const given = /^Expires:[ \t]*(\d+)/im.exec(lines)?.[1] ?? request.get('Expires')
  if ((parseExpires(given ?? '') ?? 0) <= MAX_SECONDS) return lines
  return `${lines.replace(/^Expires:.*\r\n/im, '')}Expires: ${MAX_SECONDS}\r\n`
}

/** RFC 6665 §4.1.3. */
export const isLastNotify = (notify: SipMessage): boolean =>
  /^terminated\s*(;|$)/i.test(notify.get('Subscription-State') ?? '')

const dialogFrom = (
  { sent, contact, clientId }: OutboundRequest,
  notify: SipMessage,
  flow: Flow,
): Dialog =>
  new Dialog({
    role: 'uac',
    usage: 'subscription',
    state: 'confirmed',
    clientId,
    callId: sent.callId,
    local: sent.from,
    remote: notify.get('From') ?? sent.to,
    localTag: notify.toTag,
    remoteTag: notify.fromTag,
    localCseq: sent.cseq,
    remoteCseq: -1,
    routeSet: notify.list('Record-Route'),
    remoteTarget: notify.contact?.uri ?? sent.uri,
    contact,
    flow,
    isFlowBound: isReliable(flow.listener.protocol),
  })
