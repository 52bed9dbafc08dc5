import { expect, test } from 'vitest'
import {
  askForSession,
  grantSession,
  leastOf,
} from '../../../../engine/call/user-agent/session-timer.ts'
import type { Headers } from '../../../../engine/call/signalling.ts'

const timers = { seconds: 1_800, isOurPart: false }

const asked = (headers: Headers, overrides = {}, callee = {}): Headers => {
  askForSession(headers, { ...timers, ...overrides }, callee)
  return headers
}

test('every called leg is asked for a session timer; it may choose the refresher', () => {
  expect(asked({ supported: 'uui' })).toEqual({
    supported: 'uui, timer',
    'session-expires': '1800',
    'min-se': '90',
  })
  expect(asked({}, {}, { least: 3_600 })).toMatchObject({
    'session-expires': '3600',
    'min-se': '3600',
  })
  expect(asked({}, { isOurPart: true })).toMatchObject({ 'session-expires': '1800;refresher=uac' })
})

// Who challenges an INVITE challenges a refresh, for which the SIP server has no credentials.
test('a callee that challenges us is asked to refresh', () => {
  const challenges = true
  expect(asked({}, {}, { challenges })).toMatchObject({ 'session-expires': '1800;refresher=uas' })
  expect(asked({}, { isOurPart: true }, { challenges })).toMatchObject({
    'session-expires': '1800;refresher=uac',
  })
})

test('without a timer nothing is asked and nothing granted', () => {
  expect(asked({ supported: 'uui' }, { seconds: 0 })).toEqual({ supported: 'uui' })
  const headers = {}
  grantSession({ supported: 'timer' }, headers, { ...timers, seconds: 0 })
  expect(headers).toEqual({})
})

// RFC 4028 §9, Table 2.
test.each([
  [{}, '1800;refresher=uas', undefined],
  [{ supported: 'timer' }, '1800;refresher=uac', 'timer'],
  [{ supported: 'path, timer', 'session-expires': '600' }, '600;refresher=uac', 'timer'],
  [{ require: 'timer', 'session-expires': '600;refresher=uas' }, '600;refresher=uas', undefined],
  [{ supported: 'timer', 'session-expires': '7200;refresher=UAC' }, '1800;refresher=uac', 'timer'],
  [{ supported: 'timer', 'min-se': '3600' }, '3600;refresher=uac', 'timer'],
  // A header that a proxy added means nothing to a caller that does not know it.
  [{ 'session-expires': '600;refresher=uac', 'min-se': '3600' }, '600;refresher=uas', undefined],
  [{ supported: 'timeruac' }, '1800;refresher=uas', undefined],
])('a caller with %j gets %s', (said: Headers, expires, require) => {
  const headers: Headers = {}
  grantSession(said, headers, timers)
  expect([headers['session-expires'], headers['require']]).toEqual([expires, require])
})

test('a server that does not confirm refreshes of the peer does them itself', () => {
  const headers: Headers = {}
  grantSession({ supported: 'timer' }, headers, { ...timers, isOurPart: true })
  expect(headers['session-expires']).toBe('1800;refresher=uas')
})

test('a callee that insists on a longer interval is asked again, once, and no other is', () => {
  expect(leastOf({ 'min-se': '3600' }, timers)).toBe(3_600)
  expect(leastOf({ 'min-se': '1800' }, timers)).toBeUndefined()
  expect(leastOf({}, timers)).toBeUndefined()
  expect(leastOf({ 'min-se': 'soon' }, timers)).toBeUndefined()
})
