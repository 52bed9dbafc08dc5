import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

test('a set may have a voicemail, given as a SIP URI', async () => {
  const { call } = openResources()
  const body = { endpoint_name: 'vm', algorithm: 8, nodes: [{ host: '10.0.0.1' }] }
  const voicemail_uri = 'sip:voicemail@10.0.0.9:5070'
  const created = await call('POST', '/dispatcher', { ...body, voicemail_uri })
  expect(created.data()).toMatchObject({ voicemail_uri })
  const { id } = created.data<{ id: number }>()
  const kept = await call('PATCH', `/dispatcher/${id}`, { algorithm: 4 })
  expect(kept.data()).toMatchObject({ voicemail_uri })
  const cleared = await call('PATCH', `/dispatcher/${id}`, { voicemail_uri: null })
  expect(cleared.data()).toMatchObject({ voicemail_uri: null })
  const refused = await call('PATCH', `/dispatcher/${id}`, { voicemail_uri: 'mailbox' })
  expect(refused.body).toMatchObject({ details: [{ path: 'voicemail_uri' }] })
})
