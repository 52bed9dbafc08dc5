import { expect, test } from 'vitest'
import { deleteOrphans } from '../../../../engine/media/gate/sessions.ts'
import type { NgAnswer, Relay } from '../../../../engine/media/relay/relays.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { turnOfEventLoop } from '../../../support/waiting.ts'

const PAGE = 800

/** A relay that lists its first sessions, as rtpengine does, and what a start does about those of a crash. */
function open(names: readonly string[]) {
  const left = new Set(names)
  const time = new ManualTime(0)
  const state = { isAway: false, lists: 0, longest: 0 }
  const answerTo = ({ command, ...values }: Readonly<Record<string, unknown>>): NgAnswer => {
    if (state.isAway) return { kind: 'timeout' }
    if (command !== 'list') {
      left.delete(String(values['call-id']))
      return { kind: 'ok', values: {} }
    }
    state.lists += 1
    const calls = [...left].slice(0, Number(values['limit']))
    state.longest = Math.max(state.longest, calls.length)
    return { kind: 'ok', values: { calls } }
  }
  const relay: Relay = {
    name: 'relay',
    isAlive: true,
    seenAt: 0,
    ask: () => undefined,
    request: (request) => Promise.resolve(answerTo(request)),
  }
  const isOrphan = (name: string): boolean => name.startsWith('orphan')
  const after = (act: () => void, delayMs: number) => time.schedule(act, delayMs)
  deleteOrphans([relay], { isOrphan }, after)
  const pass = async (ms: number): Promise<void> => {
    time.advance(ms)
    for (let turn = 0; turn < 5; turn += 1) await turnOfEventLoop()
  }
  return { left, state, pass }
}

const sessions = (kind: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${kind}-${at}`)

test('all sessions of 10,000 calls are deleted, in pages that fit into a datagram', async () => {
  const { left, state, pass } = open([...sessions('live', 500), ...sessions('orphan', 10_000)])
  await pass(0)
  expect(left.size).toBe(500)
  expect([...left].filter((name) => name.startsWith('orphan'))).toEqual([])
  expect(state.longest).toBe(PAGE)
})
