import { expect, test } from 'vitest'
import { extensionBody } from '../../../../../control/console/web/screens/extension-fields.ts'
import type { ExtensionDetails } from '../../../../../control/console/web/api/views.ts'

const fields: Readonly<Record<string, string>> = {
  extension: '100',
  display_name: 'Desk',
  voicemail: 'on',
  recording: 'never',
  media_profile: 'auto',
  codecs: 'opus, PCMA',
  dtmf: 'auto',
  tenant: 'acme',
}
const textOf =
  (change: Readonly<Record<string, string>> = {}) =>
  (name: string) =>
    ({ ...fields, ...change })[name] ?? ''

const before: ExtensionDetails = {
  id: 1,
  extension: '100',
  domain: 'acme.example',
  tenant: 'acme',
  display_name: 'Desk',
  email: null,
  customer_id: null,
  customer: null,
  voicemail_enabled: true,
  call_recording: 'never',
  media: null,
  media_profile: 'auto',
  codecs: ['opus', 'PCMA'],
  dtmf: 'auto',
  recording_active: false,
  status: 'unregistered',
  contacts: [],
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
}

test('a new extension has all fields; empty ones are null', () => {
  expect(extensionBody(textOf(), undefined)).toEqual({
    extension: '100',
    display_name: 'Desk',
    email: null,
    voicemail_enabled: true,
    call_recording: 'never',
    media: null,
    media_profile: 'auto',
    codecs: ['opus', 'PCMA'],
    dtmf: 'auto',
    tenant: 'acme',
  })
})

test('of one that exists, only what has changed is sent', () => {
  expect(extensionBody(textOf(), before)).toEqual({})
  expect(extensionBody(textOf({ codecs: '', email: 'a@b.example' }), before)).toEqual({
    codecs: null,
    email: 'a@b.example',
  })
})
