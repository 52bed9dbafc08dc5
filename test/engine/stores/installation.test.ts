import { expect, test } from 'vitest'
import { installationOf } from '../../../engine/stores/installation.ts'
import type { InstanceStatus } from '../../../schema/contracts/instances.ts'

const status = (name: string, state: InstanceStatus['state']): InstanceStatus => ({
  name,
  state,
  epoch: 1,
  address: '',
  sipUri: `sip:${name}.example`,
  version: '1',
  sipAddresses: [`${name} at`],
  liveCalls: 0,
  startedAt: 0,
  heartbeatAt: 0,
  clockDifferenceMs: 0,
  isThis: name === 'a',
})
const states = ['starting', 'serving', 'draining', 'stopped', 'lost'] as const

function aliveAt(heartbeatAgeMs: number): readonly string[] {
  const { self, key, instances } = installationOf(
    { secrets: { ...noSecrets, keyFor: (purpose) => Buffer.from(purpose) } },
    {
      identity: { name: 'a', epoch: 1 },
      heartbeatAgeMs,
      list: () => states.map((each) => status(each, each)),
    },
  )
  expect([self, key.toString()]).toEqual(['a', 'nodes'])
  expect(instances()[0]).toMatchObject({
    sipUri: 'sip:starting.example',
    addresses: ['starting at'],
  })
  return instances().flatMap(({ name, isAlive }) => (isAlive ? [name] : []))
}

const noSecrets = {
  seal: () => {
    throw new Error('not asked')
  },
  open: () => undefined,
}

test('phones are called through instances that serve, or still have calls', () => {
  expect(aliveAt(0)).toEqual(['serving', 'draining'])
  expect(aliveAt(2_999)).toEqual(['serving', 'draining'])
})

test('an instance that cannot hear the database server gives no other one up for it', () => {
  expect(aliveAt(3_000)).toEqual(['serving', 'draining', 'lost'])
})
