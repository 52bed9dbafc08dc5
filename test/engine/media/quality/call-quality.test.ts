import { expect, test } from 'vitest'
import type { ClosedSession } from '../../../../engine/media/call-media.ts'
import { measuredQuality } from '../../../../engine/media/quality/quality.ts'
import type { NgDictionary } from '../../../../engine/media/relay/relays.ts'
import { candidate } from '../../../support/call-rig.ts'
import { CallMachine } from '../../../support/call-machine.ts'

function answered() {
  const machine = new CallMachine()
  const legs = machine.answered(null, candidate(1, 5_060))
  return { call: machine.call(), ...legs }
}

const party = (packets: number) => ({
  medias: [{ type: 'audio', streams: [{ flags: ['RTP'], stats: { packets } }] }],
})

function closed(
  legs: readonly [string, string],
  packets: readonly [number, number],
): ClosedSession {
  const relay = {
    name: 'r',
    isAlive: true,
    seenAt: 0,
    ask: () => undefined,
    request: () => Promise.resolve({ kind: 'timeout' } as const),
  }
  const values: NgDictionary = {
    tags: { [legs[0]]: party(packets[0]), [legs[1]]: party(packets[1]) },
  }
  return { session: { id: 's', relay, legs, callUuids: ['u'] }, values }
}

const media = (sessions: readonly ClosedSession[] | undefined) => ({
  closedSessions: () => sessions && Promise.resolve(sessions),
})

test('each party is found by its leg, whichever of them made the offer', async () => {
  const { call, caller, callee } = answered()
  for (const session of [closed([caller, callee], [10, 20]), closed([callee, caller], [20, 10])]) {
    const quality = await measuredQuality(call, media([session]))
    expect([quality?.caller?.packets, quality?.callee?.packets]).toEqual([10, 20])
  }
})

test('after a transfer each party is judged by where most was heard from it', async () => {
  const { call, caller, callee } = answered()
  const sessions = [closed([caller, callee], [10, 20]), closed([caller, 'other/1'], [500, 490])]
  const quality = await measuredQuality(call, media(sessions))
  expect([quality?.caller?.packets, quality?.callee?.packets]).toEqual([500, 490])
})
