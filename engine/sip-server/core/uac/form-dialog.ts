/** The dialogs that responses to a request of ours begin: one for each branch that answers (RFC 3261 §12.1.2). */
import { isIP } from 'node:net'
import type { DialogTable } from '../../dialog/dialog-table.ts'
import { Dialog } from '../../dialog/dialog.ts'
import { isReliable, type Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseUri } from '../../message/uri.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { tagOf } from '../app-headers.ts'
import type { OutboundRequest } from './outbound-request.ts'

/** A provisional response with a tag. Other branches get an early dialog each, under the same id. */
export function formEarlyDialog(
  dialogs: DialogTable,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): void {
  const first = outbound.dialog
  if (first?.branchOf(response.toTag)) return
  const dialog = dialogFrom(outbound, response, flow, 'early')
  if (first) return first.addBranch(dialog)
  outbound.formed(dialog)
  dialogs.add(dialog)
}

/** A 2xx; the route set is taken again from it (§13.2.2.4). */
export function formDialog(
  dialogs: DialogTable,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): Dialog {
  const early = outbound.dialog
  const isSame = early?.state === 'early' && early.remote === response.get('To')
  if (isSame && early.usage === 'invite') {
    early.confirmedBy(routeToPeer(outbound.sent, response, flow))
    return early
  }
  const dialog = dialogFrom(outbound, response, flow, 'confirmed')
  if (early) {
    dialogs.remove(early)
    dialog.succeeds(early)
  }
  outbound.formed(dialog)
  dialogs.add(dialog)
  return dialog
}

/** What a branch of a request needs to become a dialog. */
export interface BranchOrigin extends Pick<OutboundRequest, 'clientId' | 'contact' | 'dialog'> {
  readonly sent: Pick<
    SentRequest,
    'method' | 'uri' | 'routes' | 'from' | 'to' | 'callId' | 'cseq' | 'branch'
  >
}

/** In no table yet. */
export function dialogFrom(
  outbound: BranchOrigin,
  response: SipMessage,
  flow: Flow,
  state: 'early' | 'confirmed',
): Dialog {
  const { sent } = outbound
  // What was sent in the early dialog (PRACK, UPDATE) has used up numbers.
  const early = outbound.dialog?.branchOf(response.toTag)
  return new Dialog({
    ...routeToPeer(sent, response, flow),
    role: 'uac',
    usage: sent.method === 'INVITE' ? 'invite' : 'subscription',
    state,
    clientId: outbound.clientId,
    callId: sent.callId,
    local: sent.from,
    remote: response.get('To') ?? sent.to,
    localTag: tagOf(sent.from),
    remoteTag: response.toTag,
    localCseq: early?.localCseq ?? sent.cseq,
    remoteCseq: early?.remoteCseq ?? -1,
    contact: outbound.contact,
  })
}

function routeToPeer(sent: BranchOrigin['sent'], response: SipMessage, flow: Flow) {
  const routeSet = response.list('Record-Route').toReversed()
  return {
    routeSet,
    // A 2xx without Contact is against §12.1.1: the INVITE's own target is the best guess.
    remoteTarget: response.contact?.uri ?? sent.uri,
    flow,
    isFlowBound:
      isReliable(flow.listener.protocol) ||
      (routeSet.length === 0 && isBehindNat(sent, response, flow)),
  }
}

/**
 * By UDP and without a route set: the peer of an INVITE that had to leave by another way than its
 * Request-URI names (a phone that registered from behind NAT), and one that gives a private Contact
 * from a public address. ACK and BYE go to where the answer came from (RFC 3581, RFC 5626 §5.3).
 */
function isBehindNat(sent: BranchOrigin['sent'], response: SipMessage, flow: Flow): boolean {
  const contact = response.contact?.parsedUri
  if (contact === undefined || leadsTo(contact, flow)) return false
  if (isPrivate(contact.host) && !isPrivate(flow.address)) return true
  if (sent.routes.length > 0) return false
  const target = parseUri(sent.uri)
  if (target === undefined) return false
  // A name may stand for this very address; one that the peer gives again leads nowhere new.
  return isIP(target.host) === 0 ? target.host === contact.host : !leadsTo(target, flow)
}

const leadsTo = (uri: { readonly host: string; readonly port: number }, flow: Flow): boolean =>
  uri.host === flow.address && (uri.port === 0 ? 5_060 : uri.port) === flow.port

/** RFC 1918, RFC 6598. */
const isPrivate = (host: string): boolean =>
  /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(host)
