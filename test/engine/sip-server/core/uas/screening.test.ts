/** New requests that no application hears of. */
import { expect, test } from 'vitest'
import type { NewRequest, Screening } from '../../../../../engine/sip-server/options.ts'
import { VirtualServer, requestOf, sdp } from '../../../../support/sip-core.ts'

const screening = (screen: (request: NewRequest) => Screening | undefined) =>
  new VirtualServer({ more: { screen } })

test('a refused request gets the same answer again and again, and keeps no state', () => {
  const server = screening(() => ({ status: 603, reason: 'Decline' }))
  const before = server.core.stats()
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('ACK'))
  const [first, second, ...rest] = server.takeSent().map(({ text }) => text)
  expect(first).toContain('SIP/2.0 603 Decline\r\n')
  expect(second).toBe(first)
  expect(rest).toEqual([])
  expect(server.delivered).toEqual([])
  expect(server.core.stats()).toEqual(before)
})

test('a dropped request gets no answer', () => {
  const server = screening(() => 'drop')
  server.receive(requestOf('OPTIONS'))
  expect(server.takeSent()).toEqual([])
  expect(server.delivered).toEqual([])
})

test('it is asked of requests outside dialogs alone, with what is known of them', () => {
  const seen: string[] = []
  const server = screening(({ method, sourceAddress, get, text }) => {
    seen.push(`${method} ${sourceAddress} ${get('User-Agent')} ${text.split(' ', 1)[0]}`)
    return undefined
  })
  server.receive(requestOf('OPTIONS', { extra: ['User-Agent: probe'] }))
  server.receive(requestOf('BYE', { toTag: 'x', branch: 'z9hG4bK-2' }))
  expect(seen).toEqual(['OPTIONS 203.0.113.7 probe OPTIONS'])
  expect(server.delivered).toHaveLength(1)
})
