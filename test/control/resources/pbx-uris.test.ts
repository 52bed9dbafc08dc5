import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

test('a set may have a voicemail, given as a SIP URI', async () => {
  const { call } = await openResources()
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

test('a set may let supervisors into its calls, at a URI that names the call', async () => {
  const { call } = await openResources()
  const body = { endpoint_name: 'spied', algorithm: 8, nodes: [{ host: '10.0.0.1' }] }
  const spy_uri = 'sip:spy-{mode}-{side}-{call_uuid}@{node};transport=tcp'
  const created = await call('POST', '/dispatcher', { ...body, spy_uri })
  expect(created.data()).toMatchObject({ spy_uri })
  const { id } = created.data<{ id: number }>()
  const kept = await call('PATCH', `/dispatcher/${id}`, { algorithm: 4 })
  expect(kept.data()).toMatchObject({ spy_uri })
  for (const wrong of [
    'sip:spy@{node}',
    'sip:{call_uuid}@{host}',
    '{call_uuid}',
    'http:{call_uuid}@{node}',
  ])
    expect((await call('PATCH', `/dispatcher/${id}`, { spy_uri: wrong })).body).toMatchObject({
      details: [{ path: 'spy_uri' }],
    })
  const cleared = await call('PATCH', `/dispatcher/${id}`, { spy_uri: null })
  expect(cleared.data()).toMatchObject({ spy_uri: null })
})
