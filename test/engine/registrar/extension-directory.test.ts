import { expect, test } from 'vitest'
import { ExtensionDirectory } from '../../../engine/registrar/extension-directory.ts'
import { startRegistrar } from './phone.ts'

const domain = 'acme.example'

test('a change on the same connection holds at once', () => {
  const { store } = startRegistrar()
  const directory = new ExtensionDirectory(store)
  const find = () => directory.find(domain, '101')
  expect([find()?.displayName, directory.tenantOf(domain)]).toEqual(['101', find()?.tenantId])
  store.sqlite.exec("UPDATE extension SET display_name = 'Anna' WHERE extension = '101'")
  expect(find()?.displayName).toBe('Anna')
  store.sqlite.exec('UPDATE tenant SET is_active = 0')
  expect(find()).toBeUndefined()
  store.sqlite.exec('UPDATE tenant SET is_active = 1')
  expect(find()?.displayName).toBe('Anna')
  store.sqlite.exec('DELETE FROM extension; DELETE FROM tenant_domain')
  expect([find(), directory.tenantOf(domain)]).toEqual([undefined, undefined])
})

test('an extension that did not exist is found as soon as it does', () => {
  const { store } = startRegistrar()
  const directory = new ExtensionDirectory(store)
  expect(directory.find(domain, '103')).toBeUndefined()
  expect(directory.tenantOf('new.example')).toBeUndefined()
  store.sqlite.exec("UPDATE extension SET extension = '103' WHERE extension = '102'")
  store.sqlite.exec("INSERT INTO tenant_domain SELECT 'new.example', id FROM tenant")
  expect(directory.find(domain, '103')?.extension).toBe('103')
  expect(directory.find(domain, '102')).toBeUndefined()
  expect(directory.tenantOf('new.example')).toBeDefined()
})

test('what an extension does not say about media, its tenant says', () => {
  const { store } = startRegistrar()
  const directory = new ExtensionDirectory(store)
  const media = () => directory.find(domain, '101')?.media
  expect(media()).toBeUndefined()
  store.sqlite.exec(`UPDATE tenant SET media = 'prefer', codecs = '["PCMA"]', dtmf = 'info'`)
  const tenant = { policy: 'prefer', profile: 'auto', codecs: ['PCMA'], dtmf: 'info' }
  expect(media()).toEqual(tenant)
  store.sqlite.exec(`UPDATE extension SET media_profile = 'webrtc', codecs = '["opus"]'`)
  expect(media()).toEqual({ ...tenant, profile: 'webrtc', codecs: ['opus'] })
  store.sqlite.exec("UPDATE extension SET media = 'bypass', dtmf = 'rfc4733'")
  expect(media()).toMatchObject({ policy: 'bypass', dtmf: 'rfc4733' })
})
