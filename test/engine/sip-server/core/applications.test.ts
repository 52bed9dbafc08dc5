import { expect, test } from 'vitest'
import { Applications, Outbox } from '../../../../engine/sip-server/core/outbox.ts'
import { Traffic } from '../../../../engine/sip-server/core/traffic.ts'

/** Three applications that take INVITE; the tags of each. */
function three(...tags: readonly (readonly string[])[]): Applications {
  const applications = new Applications(new Outbox(new Traffic()))
  for (const id of [1, 2, 3]) {
    applications.connected(id, false)
    applications.authenticate(id, tags[id - 1] ?? [])
    applications.addRoute(id, 'invite')
  }
  return applications
}

const turns = (applications: Applications, count: number, tag?: string) =>
  Array.from({ length: count }, () => applications.next('INVITE', tag))

test('applications take requests in turn, each verb for itself', () => {
  const applications = three()
  applications.addRoute(2, 'options')
  applications.addRoute(3, 'options')
  expect(turns(applications, 4)).toEqual([1, 2, 3, 1])
  expect(applications.next('OPTIONS')).toBe(2)
  expect(turns(applications, 2)).toEqual([2, 3])
  expect(applications.next('OPTIONS')).toBe(3)
})

test('asking twice for a verb brings no second turn, and one verb is dropped alone', () => {
  const applications = three()
  applications.addRoute(1, 'invite')
  applications.addRoute(1, 'options')
  applications.removeRoute(1, 'invite')
  expect(turns(applications, 3)).toEqual([2, 3, 2])
  expect(applications.next('OPTIONS')).toBe(1)
})

test('with a tag the turn is among those that have it', () => {
  const applications = three(['a', 'x'], ['b'], ['a'])
  expect(turns(applications, 3, 'a')).toEqual([1, 3, 1])
  expect(turns(applications, 2, 'b')).toEqual([2, 2])
  expect(applications.next('INVITE', 'absent')).toBeUndefined()
  expect(applications.next('OPTIONS', 'a')).toBeUndefined()
  expect(new Set(turns(applications, 3))).toEqual(new Set([1, 2, 3]))
})
