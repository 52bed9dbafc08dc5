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

test('after a gap one loads after the other, and what is told meanwhile of those that wait comes first', async () => {
  const { time, log, followers } = rig()
  const told: (readonly [string, Details])[] = []
  const loading = new Map<string, () => void>()
  let isBroken = true
  const loads = (name: string) => (details: Details) => {
    told.push([name, details])
    if (details !== 'all') return Promise.resolve()
    if (name === 'rates' && isBroken) return Promise.reject(new Error('no'))
    return new Promise<void>((resolve) => void loading.set(name, resolve))
  }
  followers.follow({ topics: ['carrier'], reload: loads('carriers') })
  followers.follow({ topics: ['rate'], reload: loads('rates') })
  followers.follow({ topics: ['extension'], reload: loads('extensions') })
  followers.follow({ topics: [], reload: loads('registrations') })
  const next = async (work: () => void): Promise<typeof told> => {
    work()
    await new Promise(setImmediate)
    return told.splice(0)
  }
  const end = (name: string) => next(() => loading.get(name)?.())
  expect(await next(() => followers.changedAll(1_500))).toEqual([])
  expect(await next(() => time.advance(1_499))).toEqual([])
  expect(await next(() => time.advance(1))).toEqual([['carriers', 'all']])
  const phone = () => followers.changed('extension', '7')
  expect(await next(phone)).toEqual([['extensions', new Set(['7'])]])
  // One that fails goes on alone.
  expect(await end('carriers')).toEqual([
    ['rates', 'all'],
    ['extensions', 'all'],
  ])
  isBroken = false
  expect(await next(() => time.advance(500))).toEqual([['rates', 'all']])
  expect(await end('extensions')).toEqual([['registrations', 'all']])
  expect(log).toEqual(['error'])
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

test('changes in the interval after a load are one load; of more than fifty, of everything', async () => {
  const { time, followers } = rig()
  const told: Details[] = []
  const reload = async (details: Details) => void told.push(details)
  followers.follow({ topics: ['rate'], reload, intervalMs: 1_000 })
  for (let prefix = 0; prefix < 60; prefix += 1) followers.changed('rate', `1/${prefix}`)
  followers.changed('carrier', '1')
  await new Promise(setImmediate)
  time.advance(1_000)
  expect(told).toEqual([new Set(['1/0']), 'all'])
})
