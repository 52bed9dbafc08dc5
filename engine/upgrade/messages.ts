/** What the old process and the new one tell each other in a planned upgrade. */
import type { Held } from '../../schema/contracts/charging.ts'
import type { HeardDigit } from '../media/digits/heard-digits.ts'
import type { PassedDatagram } from '../sip-server/index.ts'

/** Raised when a message means something else than before: then one refuses the other. */
export const UPGRADE_FORM = 1

/** Given to the new process with its start. Its file descriptors from `FIRST_DESCRIPTOR` on are sockets in this order. */
export interface Offer {
  readonly form: number
  /** What the old one listens on, as in its settings: SIP, the API, the customer edge. */
  readonly listening: readonly string[]
  /** What the old one leases money under, where several processes do. */
  readonly leaseName?: string | undefined
}

/** Behind the three standard streams and the channel. */
export const FIRST_DESCRIPTOR = 4

/** The environment of the new process has the offer under this name. */
export const OFFER = 'TOLLGATE_UPGRADE'

export type FromNew =
  /** What it would say on its standard error. */
  | { readonly kind: 'complaint'; readonly line: string }
  /** Everything is read and checked. */
  | { readonly kind: 'loaded' }
  | { readonly kind: 'serving'; readonly pid: number; readonly version: string }
  | { readonly kind: 'datagram'; readonly datagram: PassedDatagram }
  /** In the media of a call that it does not have. */
  | { readonly kind: 'digit'; readonly digit: HeardDigit }
  /** Nothing is passed on any more. */
  | { readonly kind: 'alone' }

export interface HandedOver {
  readonly held: readonly Held[]
}

export type FromOld =
  /** The new one may serve. */
  | ({ readonly kind: 'handed over' } & HandedOver)
  /** The old one reads nothing any more. */
  | { readonly kind: 'left' }
  | { readonly kind: 'datagram'; readonly datagram: PassedDatagram }
  /** The old one has nothing left, and ends when it has heard that nothing more comes. */
  | { readonly kind: 'done' }
  /** What the calls of the old one hold of wallets now. */
  | { readonly kind: 'held'; readonly held: readonly Held[] }

/** The channel to the other process. */
export interface Link<Sent, Received> {
  readonly pid: number
  /** Nothing after the end. Datagrams are thrown away when too many wait. */
  send(message: Sent): void
  onMessage(listener: (message: Received) => void): void
  /** Once; `how` in words. */
  onEnd(listener: (how: string) => void): void
  /** Ends the new process; lets go of the old one. */
  end(): void
}
