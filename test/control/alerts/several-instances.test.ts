/** Several instances alert from one database, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest'
import {
  alertRig,
  deadServer,
  nodeEvent,
  type SentAlert,
  storeNodes,
  textsOf,
} from '../../support/alert-rig.ts'
import type { SendOutcome } from '../../../control/alerts/send-outcome.ts'
import { start } from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { settling, sharedDatabase } from '../../support/shared-database.ts'
import { seededRandom } from '../../support/seeded-random.ts'

describe.runIf(hasPostgres)('alerts of several instances', () => {
  let time: ManualTime
  let database: Awaited<ReturnType<typeof sharedDatabase>>
  let all: SentAlert[]
  let settledOnes: (() => Promise<void>)[]

  async function openInstance(instance: string, answer: () => Promise<SendOutcome>) {
    const { store, settled } = settling(await database.open())
    settledOnes.push(settled)
    const rig = alertRig(store, time, {
      instance,
      answer: (sent) => {
        all.push(sent)
        return answer()
      },
    })
    await rig.alerts.reload()
    return rig
  }

  async function pass(ms: number, stepMs = 100): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      time.advance(stepMs)
      for (let turn = 0; turn < 2; turn += 1) for (const settled of settledOnes) await settled()
    }
  }

  beforeEach(async () => {
    time = new ManualTime(start)
    database = await sharedDatabase()
    await storeNodes(await database.open(), 60)
    all = []
    settledOnes = []
  })

  test('an instance that does not know a rule yet keeps its quiet hours', async () => {
    const answer = async (): Promise<SendOutcome> => ({ kind: 'sent' })
    const [first, late] = [await openInstance('a', answer), await openInstance('b', answer)]
    await first.channel()
    await late.alerts.reload()
    const until = new Date(start + 3_600_000).toISOString().slice(11, 16)
    const from = new Date(start).toISOString().slice(11, 16)
    const quiet_hours = { from, to: until, time_zone: 'UTC' }
    await first.rule({ on: 'node_down', group_seconds: 0, quiet_hours })
    await first.write(nodeEvent(1, 'down'))
    for (const { alerts } of [first, late]) alerts.start()
    await pass(600_000, 3_000)
    expect(all).toEqual([])
    await pass(3_060_000, 3_000)
    expect(all).toHaveLength(1)
  })

  test('each event is in one message, whichever instance has written it, while instances die', async () => {
    const random = seededRandom(20261129)
    let isDead = true
    const answer = async (): Promise<SendOutcome> => (isDead ? deadServer : { kind: 'sent' })
    const first = await openInstance('first', answer)
    await first.channel()
    await first.rule({ on: 'node_down', group_seconds: 2 })
    first.alerts.start()
    const living = [first]
    for (let node = 0; node < 60; node += 1) {
      if (node % 12 === 0) {
        // One dies with what it has in its hands, and another one comes.
        const gone = living.length > 1 ? living.shift() : undefined
        if (gone !== undefined) gone.die()
        const next = await openInstance(`n${node}`, answer)
        next.alerts.start()
        living.push(next)
      }
      const writer = living[Math.floor(random() * living.length)]
      await writer?.write(nodeEvent(node, 'down'))
      await pass(100)
    }
    isDead = false
    all.length = 0
    await pass(600_000, 3_000)
    const told = textsOf(all).flat()
    expect(new Set(told).size).toBe(60)
    expect(told).toHaveLength(60)
    expect(living.flatMap(({ problems }) => problems)).toEqual([])
  }, 120_000)

  test('a message of an instance that died while it was sent is sent by another one, with its id', async () => {
    const first = await openInstance('a', () => new Promise(() => undefined))
    await first.channel()
    await first.rule({ on: 'node_down', group_seconds: 0 })
    first.alerts.start()
    await pass(200)
    await first.write(nodeEvent(1, 'down'))
    await pass(500)
    expect(all.map(({ instance }) => instance)).toEqual(['a'])
    first.die()
    const second = await openInstance('b', async () => ({ kind: 'sent' }))
    second.alerts.start()
    await pass(100_000, 1_000)
    expect(all).toHaveLength(1)
    await pass(60_000, 1_000)
    expect(all.map(({ instance }) => instance)).toEqual(['a', 'b'])
    expect(all[0]?.key).toBe(all[1]?.key)
  }, 60_000)
})
