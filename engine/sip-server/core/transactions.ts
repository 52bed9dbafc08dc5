/**
 * The table of transactions: matches what comes in (RFC 3261 §17.1.3, §17.2.3), and starts new
 * ones. An ended transaction that waits for copies alone is an entry of a cache.
 */
import type { Outbox } from './outbox.ts'
import { type Flow, isReliable } from '../flow.ts'
import { flattened, type SipMessage } from '../../../schema/sip/message.ts'
import type { Via } from '../../../schema/sip/fields.ts'
import { ReleasingMap } from '../../../schema/sip/releasing-map.ts'
import { InviteClientTransaction, NonInviteClientTransaction } from '../transaction/client.ts'
import { Deadlines } from '../transaction/deadlines.ts'
import {
  cancelOf,
  type ClientUser,
  type SentRequest,
  type ServerUser,
  type Timers,
  type TransactionContext,
  transactionTimeoutMs,
} from '../transaction/machine.ts'
import { RetransmitCache } from '../transaction/retransmit-cache.ts'
import { InviteServerTransaction, NonInviteServerTransaction } from '../transaction/server.ts'
import { FlowTexts } from './flow-texts.ts'
import type { Identifiers } from './identifiers.ts'

export type ClientTransaction = InviteClientTransaction | NonInviteClientTransaction
export type ServerTransaction = InviteServerTransaction | NonInviteServerTransaction

/** A request whose copies are still expected. */
export interface AnsweredRequest {
  readonly key: string
  /** To tag of our response. */
  readonly toTag: string
  /** The response that a copy gets; empty without `flow`: none. */
  readonly response: string
  readonly flow: Flow | undefined
}

export class Transactions implements TransactionContext {
  readonly timers: Timers
  readonly deadlines = new Deadlines()
  readonly #outbox: Outbox
  readonly #clients = new ReleasingMap<string, ClientTransaction>()
  /** Client transactions on streams by the peer whose answer they wait for. */
  readonly #byPeer = new Map<string, Set<ClientTransaction>>()
  readonly #servers = new ReleasingMap<string, ServerTransaction>()
  /**
   * Answered requests by the key of their transaction: our tag, and perhaps flow and text of the
   * response for copies.
   */
  readonly #responses: RetransmitCache
  /** ACKs of failure responses, by branch: flow and text. */
  readonly #acks: RetransmitCache
  readonly #flows = new FlowTexts()
  readonly #ids: Identifiers

  constructor(timers: Timers, outbox: Outbox, ids: Identifiers) {
    this.timers = timers
    this.#outbox = outbox
    this.#ids = ids
    this.#responses = this.retransmitCache()
    this.#acks = this.retransmitCache()
  }

  /** A table whose entries live for 64·T1. */
  retransmitCache(): RetransmitCache {
    return new RetransmitCache(
      this.deadlines,
      transactionTimeoutMs(this.timers),
      this.#ids.number(),
    )
  }

  keepResponse(
    key: string,
    toTag: string,
    response: string,
    flow: Flow | undefined,
    now: number,
  ): void {
    if (response === '' || flow === undefined) this.#responses.add(key, toTag, now)
    else this.#responses.add(key, `${toTag}\n${this.#flows.write(flow)}\n`, now, response)
  }

  /** Requests that were answered at `since` or later. */
  *answered(since: number): Iterable<AnsweredRequest> {
    for (const [key, entry] of this.#responses.addedSince(since)) {
      const [toTag, sent] = cut(entry)
      const [flowText, response] = cut(sent)
      yield { key, toTag, response, flow: sent === '' ? undefined : this.#flows.read(flowText) }
    }
  }

  keepAck(branch: string, ack: string, flow: Flow, now: number): void {
    this.#acks.add(branch, `${this.#flows.write(flow)}\n`, now, ack)
  }

  send(text: string, flow: Flow, reference: string): void {
    this.#outbox.send(text, flow, reference)
  }

  repeat(text: string, flow: Flow, reference: string): void {
    this.#outbox.repeat(text, flow, reference)
  }

  /** Sends a request. Its user calls `endClient` when the transaction has terminated. */
  startClient(sent: SentRequest, flow: Flow, user: ClientUser, now: number): ClientTransaction {
    const transaction =
      sent.method === 'INVITE'
        ? new InviteClientTransaction(sent, flow, user, this, now)
        : new NonInviteClientTransaction(sent, sent.branch, flow, user, this, now)
    this.#add(sent.branch, transaction)
    return transaction
  }

  /** A request that was sent by UDP without a transaction has one from Timer E on: T1 later. */
  takeUp(
    { branch, text, method }: Pick<SentRequest, 'branch' | 'text' | 'method'>,
    flow: Flow,
    user: ClientUser,
    provisional: SipMessage | undefined,
    now: number,
  ): void {
    const request = { method, text }
    const { t1Ms } = this.timers
    const transaction = new NonInviteClientTransaction(request, branch, flow, user, this, now, t1Ms)
    this.#add(branch, transaction)
    if (provisional) transaction.receive(provisional, flow, now)
    transaction.onTimer('timerE', now)
  }

  /** Sends a request whose response has no effect. */
  sendUnattended(sent: SentRequest, key: string, flow: Flow, now: number): void {
    const user: ClientUser = {
      onResponse: () => undefined,
      onFailure: () => undefined,
      onTerminated: () => this.endClient(key),
    }
    this.#add(key, new NonInviteClientTransaction(sent, key, flow, user, this, now))
  }

  /**
   * RFC 3261 §9.1: the INVITE itself ends with 487. `lines` holds whole header lines such as
   * Reason.
   */
  cancel(invite: SentRequest, flow: Flow, lines: string, now: number): void {
    const request = { ...invite, method: 'CANCEL', text: cancelOf(invite, lines) }
    this.sendUnattended(request, clientKey(invite.branch, 'CANCEL'), flow, now)
  }

  endClient(key: string): void {
    const transaction = this.#clients.get(key)
    if (transaction === undefined) return
    this.#clients.delete(key)
    const { flow } = transaction
    if (!isReliable(flow.listener.protocol)) return
    const peer = peerOf(flow)
    const others = this.#byPeer.get(peer)
    others?.delete(transaction)
    if (others?.size === 0) this.#byPeer.delete(peer)
  }

  /** Whether the request with that key has a transaction, or had one within 64·T1. */
  hasServer(key: string): boolean {
    return this.#servers.has(key) || this.#responses.find(key) !== undefined
  }

  /** How many requests wait for their final response. */
  get unansweredCount(): number {
    let count = 0
    for (const { state } of this.#servers.values())
      if (state === 'trying' || state === 'proceeding') count += 1
    return count
  }

  /** §17.1.3: branch of the top Via and method of the CSeq. False: no transaction waits for it. */
  receiveResponse(response: SipMessage, flow: Flow, now: number): boolean {
    const branch = response.via?.branch
    if (branch === undefined) return false
    const transaction = this.#clients.get(clientKey(branch, response.method))
    if (transaction?.method === response.method) {
      transaction.receive(response, flow, now)
      return true
    }
    if (response.method !== 'INVITE' || response.status < 300) return false
    const entry = this.#acks.find(branch)
    if (entry === undefined) return false
    const [flowText, ack] = cut(entry)
    this.send(ack, this.#flows.read(flowText), '')
    return true
  }

  /** Begins one for a received request. Its user calls `endServer` when it has terminated. */
  startServer(key: string, isInvite: boolean, flow: Flow, user: ServerUser): ServerTransaction {
    const Transaction = isInvite ? InviteServerTransaction : NonInviteServerTransaction
    const transaction = new Transaction(key, flow, user, this)
    this.#servers.set(key, transaction)
    return transaction
  }

  server(key: string): ServerTransaction | undefined {
    return this.#servers.get(key)
  }

  /**
   * Answers a copy of a request whose transaction exists, or has ended within 64·T1. False: the
   * request is no copy.
   */
  repeated(key: string, now: number): boolean {
    const transaction = this.#servers.get(key)
    if (transaction) {
      transaction.repeated(now)
      return true
    }
    const entry = this.#responses.find(key)
    if (entry === undefined) return false
    const [, sent] = cut(entry)
    if (sent === '') return true
    const [flowText, response] = cut(sent)
    this.repeat(response, this.#flows.read(flowText), '')
    return true
  }

  /**
   * Our tag in the responses to the INVITE with that key. Undefined: there was none within 64·T1.
   */
  tagOfInvite(key: string): string | undefined {
    const transaction = this.#servers.get(key)
    if (transaction instanceof InviteServerTransaction) return transaction.toTag
    const entry = this.#responses.find(key)
    return entry === undefined ? undefined : cut(entry)[0]
  }

  endServer(key: string): void {
    this.#servers.delete(key)
  }

  /** The transport could not send an output with that reference. */
  sendFailed(reference: string, now: number): void {
    this.#clients.get(reference)?.transportFailed(now)
    this.#servers.get(reference)?.transportFailed(now)
  }

  /**
   * Nothing can come back for requests that went out on this connection, or that were to open it.
   */
  connectionClosed(flow: Flow, now: number): void {
    for (const transaction of [...(this.#byPeer.get(peerOf(flow)) ?? [])]) {
      const { connectionId, hostName } = transaction.flow
      const isOpener = connectionId === 0 && isOpenFor(hostName, flow.hostName)
      if (connectionId === flow.connectionId || isOpener) transaction.transportFailed(now)
    }
  }

  get clientCount(): number {
    return this.#clients.size + this.#acks.size
  }

  get serverCount(): number {
    return this.#servers.size + this.#responses.size
  }

  #add(key: string, transaction: ClientTransaction): void {
    this.#clients.set(key, transaction)
    const { flow } = transaction
    if (!isReliable(flow.listener.protocol)) return
    const peer = peerOf(flow)
    const others = this.#byPeer.get(peer)
    if (others) others.add(transaction)
    else this.#byPeer.set(peer, new Set([transaction]))
  }
}

/** The first line, and the rest. */
function cut(text: string): readonly [string, string] {
  const end = text.indexOf('\n')
  return end === -1 ? [text, ''] : [text.slice(0, end), text.slice(end + 1)]
}

/** By TLS an address may have a connection for each of its names; one without a name is for all. */
const isOpenFor = (wanted: string | undefined, open: string | undefined): boolean =>
  open === undefined || open === wanted?.toLowerCase()

const peerOf = ({ listener, address, port }: Flow): string =>
  `${listener.protocol} ${listener.port} ${address} ${port}`

const MAGIC_COOKIE = 'z9hg4bk'

/** A response belongs to the request with the branch of its top Via and the method of its CSeq. */
const clientKey = (branch: string, method: string): string =>
  method === 'CANCEL' ? `${branch} CANCEL` : branch

/**
 * A request belongs to the server transaction with the same branch, sent-by and method, ACK to
 * the one of its INVITE. Requests of RFC 2543 senders have no unique branch: they are distinguished
 * by the fields that §17.2.3 lists, without the To tag, which only their ACK carries.
 */
export function serverKey(request: SipMessage, via: Via, method: string): string {
  const branch = via.branch.toLowerCase()
  const of = method === 'ACK' ? 'INVITE' : method
  if (branch.startsWith(MAGIC_COOKIE) && branch.length > MAGIC_COOKIE.length)
    return flattened(`${branch} ${via.host.toLowerCase()}:${via.port} ${of}`)
  const cseq = request.cseq?.number ?? 0
  return flattened(
    `2543 ${request.callId} ${request.fromTag} ${cseq} ${via.host}:${via.port} ${branch} ${of}`,
  )
}
