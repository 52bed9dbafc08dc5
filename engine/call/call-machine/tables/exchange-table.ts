/**
 * Offer and answer between two legs (RFC 3264, RFC 6337): at most one re-INVITE, or UPDATE with an offer, is under
 * way, in either direction (RFC 3261 §14, RFC 3311 §5.2). A transfer pauses the exchange first, and sends each leg its
 * new media itself.
 */
import type { Table } from './table.ts'

export type ExchangeState =
  | 'stable'
  /** The offer of one peer waits for the other one's response. */
  | 'relaying'
  /** The 200 has brought an offer; the ACK brings the answer. */
  | 'awaiting-ack'
  /** As the two above, but no offer follows. */
  | 'relaying-last'
  | 'awaiting-last-ack'
  /** Offers of the peers are refused. */
  | 'paused'

export type ExchangeEvent = 'offer' | 'concluded' | 'lateOffer' | 'ack' | 'pause' | 'resume'

export type ExchangeAction = 'relay' | 'refuse' | 'tellWaiting'

const refuse = (to: ExchangeState) => ({ to, do: ['refuse'] }) as const

export const exchangeTable: Table<ExchangeState, ExchangeEvent, ExchangeAction> = {
  stable: {
    offer: { to: 'relaying', do: ['relay'] },
    pause: { to: 'paused', do: ['tellWaiting'] },
  },
  relaying: {
    offer: refuse('relaying'),
    concluded: { to: 'stable', do: [] },
    lateOffer: { to: 'awaiting-ack', do: [] },
    pause: { to: 'relaying-last', do: [] },
  },
  'awaiting-ack': {
    offer: refuse('awaiting-ack'),
    ack: { to: 'stable', do: [] },
    pause: { to: 'awaiting-last-ack', do: [] },
  },
  'relaying-last': {
    offer: refuse('relaying-last'),
    concluded: { to: 'paused', do: ['tellWaiting'] },
    lateOffer: { to: 'awaiting-last-ack', do: [] },
    resume: { to: 'relaying', do: [] },
  },
  'awaiting-last-ack': {
    offer: refuse('awaiting-last-ack'),
    ack: { to: 'paused', do: ['tellWaiting'] },
    resume: { to: 'awaiting-ack', do: [] },
  },
  paused: {
    offer: refuse('paused'),
    pause: { to: 'paused', do: ['tellWaiting'] },
    resume: { to: 'stable', do: [] },
  },
}
