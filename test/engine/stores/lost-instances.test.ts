import { expect, test } from 'vitest'
import type { InstanceCondition, InstanceStatus } from '../../../schema/contracts/instances.ts'
import { LostInstances } from '../../../engine/stores/lost-instances.ts'

function watched() {
  const world = { now: 0, state: 'serving' as InstanceStatus['state'], isThis: false, epoch: 1 }
  const instances: {
    condition: InstanceCondition
    heartbeatAgeMs: number
    list(): readonly InstanceStatus[]
  } = {
    condition: 'valid',
    heartbeatAgeMs: 0,
    list: () => [
      {
        name: 'sbc-2',
        epoch: world.epoch,
        address: 'http://10.0.0.2:8080',
        sipUri: null,
        liveCalls: 3,
        sipAddresses: [],
        version: '1.0.0',
        startedAt: 0,
        heartbeatAt: 0,
        clockDifferenceMs: 0,
        state: world.state,
        isThis: world.isThis,
      },
    ],
  }
  const logged: string[] = []
  const told: string[] = []
  const lost = new LostInstances({
    instances,
    now: () => world.now,
    log: (level, message): void => void logged.push(`${level} ${message.split(':')[0] ?? ''}`),
    tell: ({ type, node, epoch }): void => void told.push(`${type} ${node} ${epoch}`),
  })
  /** Looks each second. */
  const pass = (seconds: number): void => {
    for (let second = 0; second < seconds; second += 1) {
      world.now += 1_000
      lost.poll()
    }
  }
  return { world, instances, logged, told, pass }
}

const gone = 'error another instance sends no heartbeat'

test('that an instance is lost, then fenced, then back is told once each, with the run that it is about', () => {
  const { world, told, pass } = watched()
  world.state = 'lost'
  pass(30)
  world.state = 'stopped'
  world.epoch = 2
  pass(30)
  world.state = 'serving'
  world.epoch = 3
  pass(30)
  expect(told).toEqual(['node.lost sbc-2 1', 'node.fenced sbc-2 1', 'node.recovered sbc-2 3'])
})

test('an instance that came back while no other one was there is told as such, once', () => {
  const { told, logged, pass } = watched()
  pass(30)
  expect(told).toEqual(['node.recovered sbc-2 1'])
  expect(logged).toEqual([])
})

test('an instance that has stopped in order is not lost, and this one is never', () => {
  const { world, logged, pass } = watched()
  world.state = 'stopped'
  pass(30)
  world.isThis = true
  world.state = 'lost'
  pass(30)
  expect(logged).toEqual([])
})

test('when the database server was away for all, instances have ten seconds to be heard again', () => {
  const { world, instances, logged, pass } = watched()
  pass(30)
  instances.condition = 'unheard'
  world.state = 'lost'
  pass(30)
  instances.condition = 'valid'
  pass(10)
  expect(logged).toEqual([])
  pass(1)
  expect(logged).toEqual([gone])
})
