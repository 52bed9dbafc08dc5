/** The client transactions by branch, and those on streams by the peer that they wait for. */
import { isReliable, type Flow } from '../flow.ts'
import type { InviteClientTransaction } from '../transaction/invite-client.ts'
import type { NonInviteClientTransaction } from '../transaction/non-invite-client.ts'

type ClientTransaction = InviteClientTransaction | NonInviteClientTransaction

export class ClientTransactions {
  readonly #byKey = new Map<string, ClientTransaction>()
  readonly #byPeer = new Map<string, Set<ClientTransaction>>()

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): ClientTransaction | undefined {
    return this.#byKey.get(key)
  }

  add(key: string, transaction: ClientTransaction): void {
    this.#byKey.set(key, transaction)
    const { flow } = transaction
    if (!isReliable(flow.listener.protocol)) return
    const peer = peerOf(flow)
    const others = this.#byPeer.get(peer)
    if (others) others.add(transaction)
    else this.#byPeer.set(peer, new Set([transaction]))
  }

  remove(key: string): void {
    const transaction = this.#byKey.get(key)
    if (transaction === undefined) return
    this.#byKey.delete(key)
    const { flow } = transaction
    if (!isReliable(flow.listener.protocol)) return
    const peer = peerOf(flow)
    const others = this.#byPeer.get(peer)
    others?.delete(transaction)
    if (others?.size === 0) this.#byPeer.delete(peer)
  }

  /** Those whose request went out on this connection, named or, when it was opened for them, not. */
  onConnection(flow: Flow): readonly ClientTransaction[] {
    return [...(this.#byPeer.get(peerOf(flow)) ?? [])].filter(
      ({ flow: { connectionId, hostName } }) =>
        connectionId === flow.connectionId ||
        (connectionId === 0 && isOpenFor(hostName, flow.hostName)),
    )
  }
}

/** By TLS an address may have a connection for each of its names; one without a name is for all. */
const isOpenFor = (wanted: string | undefined, open: string | undefined): boolean =>
  open === undefined || open === wanted?.toLowerCase()

const peerOf = ({ listener, address, port }: Flow): string =>
  `${listener.protocol} ${listener.port} ${address} ${port}`
