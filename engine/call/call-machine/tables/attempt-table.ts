/** One INVITE to one destination; it ends exactly once. */
import type { Table } from './table.ts'

export type AttemptState =
  /** No response yet. */
  | 'silent'
  /** No response, and 100 does not reach us: an OPTIONS asks whether the node is alive. */
  | 'asked'
  /** The same for a destination that takes no OPTIONS: it has to ring. */
  | 'unheard'
  /** 100 or 18x received. */
  | 'ringing'
  /** Early media received: no other destination may follow. */
  | 'early'
  | 'answered'
  | 'over'

export type AttemptEvent =
  | 'response'
  | 'earlyMedia'
  | 'answered'
  | 'rejected'
  | 'unusable'
  | 'failed'
  | 'withheld'
  /** Its time is up. */
  | 'silence'
  | 'ask'
  | 'wait'
  | 'abandoned'
  | 'stopped'

export type AttemptAction = 'startRingTimer' | 'ask' | 'stopTimer' | 'close' | 'settle' | 'endCall'

const settle = { to: 'over', do: ['stopTimer', 'settle'] } as const
const giveUp = { to: 'over', do: ['stopTimer', 'close', 'settle'] } as const
const answer = { to: 'answered', do: ['stopTimer'] } as const

const ends = {
  answered: answer,
  rejected: settle,
  unusable: settle,
  failed: settle,
  abandoned: giveUp,
  stopped: giveUp,
} as const

export const attemptTable: Table<AttemptState, AttemptEvent, AttemptAction> = {
  silent: {
    ...ends,
    response: { to: 'ringing', do: ['startRingTimer'] },
    earlyMedia: { to: 'early', do: ['startRingTimer'] },
    withheld: settle,
    silence: giveUp,
    ask: { to: 'asked', do: ['ask'] },
    wait: { to: 'unheard', do: ['startRingTimer'] },
  },
  asked: {
    ...ends,
    response: { to: 'ringing', do: ['startRingTimer'] },
    earlyMedia: { to: 'early', do: ['startRingTimer'] },
    silence: giveUp,
  },
  unheard: {
    ...ends,
    response: { to: 'ringing', do: ['startRingTimer'] },
    earlyMedia: { to: 'early', do: ['startRingTimer'] },
    silence: { to: 'unheard', do: ['endCall'] },
  },
  ringing: {
    ...ends,
    response: { to: 'ringing', do: [] },
    earlyMedia: { to: 'early', do: [] },
    silence: { to: 'ringing', do: ['endCall'] },
  },
  early: {
    ...ends,
    response: { to: 'early', do: [] },
    earlyMedia: { to: 'early', do: [] },
    silence: { to: 'early', do: ['endCall'] },
  },
  answered: {},
  over: {},
}
