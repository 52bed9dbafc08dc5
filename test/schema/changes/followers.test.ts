import { expect, test } from 'vitest'
import type { Details } from '../../../schema/changes/changes.ts'
import { Followers } from '../../../schema/changes/followers.ts'
import { ManualTime } from '../../support/manual-time.ts'

function rig() {
  const time = new ManualTime(0)
  const log: string[] = []
  const followers = new Followers({ schedule: time.schedule, log: (level) => log.push(level) })
  return { time, log, followers }
}

test('only the followers of a topic load again', async () => {
  const { followers } = rig()
  const told: string[] = []
  followers.follow({ topics: ['rate'], reload: async () => void told.push('rates') })
  followers.follow({ topics: ['carrier'], reload: async () => void told.push('carriers') })
  followers.changed('carrier', '')
  followers.changed('tenant', '')
  expect(told).toEqual(['carriers'])
  followers.changedAll()
  await Promise.resolve()
  expect(told).toEqual(['carriers', 'rates', 'carriers'])
})

test('changes during a load cause one more, with all that has changed meanwhile', async () => {
  const { followers } = rig()
  const told: Details[] = []
  let finish = (): void => undefined
  const reload = (details: Details): Promise<void> => {
    told.push(details)
    return new Promise((resolve) => {
      finish = resolve
    })
  }
  followers.follow({ topics: ['rate'], reload })
  for (const prefix of ['1/49', '1/44', '1/44', '2/1']) followers.changed('rate', prefix)
  expect(told).toEqual([new Set(['1/49'])])
  finish()
  await new Promise(setImmediate)
  expect(told.slice(1)).toEqual([new Set(['1/44', '2/1'])])
  finish()
  await new Promise(setImmediate)
  expect(told).toHaveLength(2)
})

test('more than fifty details are all of it', async () => {
  const { time, followers } = rig()
  const told: Details[] = []
  const reload = async (details: Details) => void told.push(details)
  followers.follow({ topics: ['rate'], reload, intervalMs: 1_000 })
  for (let prefix = 0; prefix < 60; prefix += 1) followers.changed('rate', `1/${prefix}`)
  await new Promise(setImmediate)
  time.advance(1_000)
  expect(told).toEqual([new Set(['1/0']), 'all'])
})

test('loads that are large begin once in their interval, and the last change is never left out', async () => {
  const { time, followers } = rig()
  let loads = 0
  followers.follow({ topics: ['rate'], reload: async () => void (loads += 1), intervalMs: 1_000 })
  for (let at = 0; at < 3_000; at += 100) {
    followers.changed('rate', '')
    time.advance(100)
    await new Promise(setImmediate)
  }
  expect(loads).toBe(4)
  time.advance(10_000)
  await new Promise(setImmediate)
  expect(loads).toBe(4)
})

test('a load that fails is repeated until it works, and told once', async () => {
  const { time, log, followers } = rig()
  const told: Details[] = []
  let isBroken = true
  const reload = async (details: Details): Promise<void> => {
    told.push(details)
    if (isBroken) throw new Error('no')
  }
  followers.follow({ topics: ['rate'], reload })
  followers.changed('rate', '1/49')
  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 100) {
      time.advance(100)
      await new Promise(setImmediate)
    }
  }
  await pass(1_400)
  expect([told.length, log]).toEqual([3, ['error']])
  isBroken = false
  await pass(500)
  expect(told.at(-1)).toEqual(new Set(['1/49']))
  await pass(5_000)
  expect(told).toHaveLength(4)
})
