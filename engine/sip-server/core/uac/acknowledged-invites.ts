/**
 * INVITEs whose 2xx is acknowledged, as texts: for 64·T1 a copy of the 2xx gets its ACK again, and
 * a 2xx of another branch an ACK and a BYE (RFC 3261 §13.2.2.4).
 */
import type { CoreParts } from '../parts.ts'
import { otherBranch } from '../request-writer.ts'
import { FlowTexts } from '../flow-texts.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import type { RetransmitCache } from '../../transaction/retransmit-cache.ts'
import { type BranchOrigin, dialogFrom } from './response-receiver.ts'
import type { SentAck } from './outbound-request.ts'

/** The first lines; the ACK follows. None of them has a line break. */
const LINES = 9

export class AcknowledgedInvites {
  readonly #parts: CoreParts
  readonly #flows = new FlowTexts()
  /** The keys are branches. */
  readonly #acknowledged: RetransmitCache

  constructor(parts: CoreParts) {
    this.#parts = parts
    this.#acknowledged = parts.transactions.retransmitCache()
  }

  get size(): number {
    return this.#acknowledged.size
  }

  /** `tag` is that of the branch that has answered. */
  keep({ sent, contact, clientId }: BranchOrigin, tag: string, ack: SentAck, now: number): void {
    const { uri, routes, from, callId, cseq } = sent
    const way = this.#flows.write(ack.flow)
    const text =
      `${tag}\n${way}\n${clientId}\n${cseq}\n${routes.length}\n${uri}\n${from}\n${callId}\n` +
      `${contact}\n`
    this.#acknowledged.add(sent.branch, text, now, ack.text)
  }

  /** A response for which no transaction waits. False: it answers none of these INVITEs. */
  receive(response: SipMessage, flow: Flow, now: number): boolean {
    const { via, method, status } = response
    if (via === undefined || method !== 'INVITE' || status < 200 || status >= 300) return false
    const text = this.#acknowledged.find(via.branch)
    if (text === undefined) return false
    const lines = text.split('\n', LINES)
    const [tag = '', way = ''] = lines
    if (response.toTag === tag) {
      const ack = text.slice(lines.reduce((length, line) => length + line.length + 1, 0))
      this.#parts.transactions.send(ack, this.#flows.read(way), '')
    } else this.#endBranch(originOf(lines), response, flow, now)
    return true
  }

  #endBranch(origin: BranchOrigin, response: SipMessage, flow: Flow, now: number): void {
    const { writer, transactions, localBye } = this.#parts
    const dialog = dialogFrom(origin, response, flow, 'confirmed')
    const way = writer.flowInDialog(dialog)
    transactions.send(writer.numbered(dialog, 'ACK', origin.sent.cseq, way, {}).text, way, '')
    localBye.send(dialog, otherBranch, 'silent', now)
  }
}

function originOf(lines: readonly string[]): BranchOrigin {
  const [, , clientId, cseq, routes, uri = '', from = '', callId = '', contact = ''] = lines
  const sent = { method: 'INVITE', uri, from, to: '', callId, cseq: Number(cseq), branch: '' }
  return {
    clientId: Number(clientId),
    contact,
    dialog: undefined,
    sent: { ...sent, routes: Array<string>(Number(routes)).fill('') },
  }
}
