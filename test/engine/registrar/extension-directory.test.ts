/** Extensions in memory, as they are stored. */
import { describe, expect, test } from 'vitest'
import { ExtensionDirectory } from '../../../engine/registrar/extension-directory.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute } from '../../../schema/sql/query.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { withExtensions } from './phone.ts'

const domain = 'acme.example'

describe.each(eachDatabase)('the directory on $database', ({ open }) => {
  const start = async () => {
    const store = await withExtensions(await open())
    const directory = new ExtensionDirectory(store)
    await directory.load()
    const find = (extension = '101') => directory.find(domain, extension)
    const idOf = (extension = '101') => find(extension)?.extensionId ?? 0
    const set = (extension: string, values: Parameters<typeof update>[2]) =>
      update(store, extension, values)
    return { store, directory, find, idOf, set }
  }
  const update = (store: Store, extension: string, values: Readonly<Record<string, unknown>>) =>
    execute(store, store.db.updateTable('extension').set(values).where('extension', '=', extension))
  const setTenants = (store: Store, values: Readonly<Record<string, unknown>>) =>
    execute(store, store.db.updateTable('tenant').set(values))

  test('a change holds as soon as it is told, and nothing else is read for it', async () => {
    const { directory, find, idOf, set } = await start()
    expect([find()?.displayName, directory.tenantOf(domain)]).toEqual(['101', find()?.tenantId])
    await set('101', { display_name: 'Anna' })
    await set('102', { display_name: 'Bert' })
    expect(find()?.displayName).toBe('101')
    await directory.changed([idOf()])
    expect([find()?.displayName, find('102')?.displayName]).toEqual(['Anna', '102'])
    await directory.load()
    expect(find('102')?.displayName).toBe('Bert')
  })

  test('extensions of a tenant that is not active are not found until it is active again', async () => {
    const { store, directory, find } = await start()
    await setTenants(store, { is_active: 0 })
    await directory.reloadTenants()
    expect([find(), directory.secretOf(domain, '101')]).toEqual([undefined, undefined])
    await setTenants(store, { is_active: 1 })
    await directory.reloadTenants()
    expect(directory.secretOf(domain, '101')).toBe(find()?.secrets['SHA-256'])
    expect(find()?.displayName).toBe('101')
  })

  test('a number is found without its domain, where it is reached', async () => {
    const { directory, find } = await start()
    expect(directory.named('101', () => true)).toEqual([find()])
    expect(directory.named('101', ({ tenantId }) => tenantId !== find()?.tenantId)).toEqual([])
    expect(directory.named('999', () => true)).toEqual([])
  })

  test('what is deleted is gone, and what is made is found', async () => {
    const { store, directory, find, idOf, set } = await start()
    const [first, second] = [idOf('101'), idOf('102')]
    expect(find('103')).toBeUndefined()
    await execute(store, store.db.deleteFrom('extension').where('extension', '=', '101'))
    await set('102', { extension: '103' })
    await directory.changed([first, second])
    expect([find('101'), find('102'), find('103')?.extensionId]).toEqual([
      undefined,
      undefined,
      second,
    ])
    const tenantId = find('103')?.tenantId ?? 0
    const added = { domain: 'new.example', tenant_id: tenantId }
    expect([directory.tenantOf('new.example'), directory.onlyDomainOf(tenantId)]).toEqual([
      undefined,
      domain,
    ])
    await execute(store, store.db.insertInto('tenant_domain').values(added))
    await directory.reloadTenants()
    expect(directory.tenantOf('new.example')).toBe(tenantId)
    // Which one is meant is not known any more.
    expect(directory.onlyDomainOf(tenantId)).toBeUndefined()
  })

  test('what an extension does not say about media, its tenant says', async () => {
    const { store, directory, find, idOf, set } = await start()
    const media = async () => {
      await directory.changed([idOf()])
      await directory.reloadTenants()
      return find()?.media
    }
    expect(await media()).toBeUndefined()
    await setTenants(store, { media: 'prefer', codecs: '["PCMA"]', dtmf: 'info' })
    const tenant = { policy: 'prefer', profile: 'auto', codecs: ['PCMA'], dtmf: 'info' }
    expect(await media()).toEqual(tenant)
    await set('101', { media_profile: 'webrtc', codecs: '["opus"]' })
    expect(await media()).toEqual({ ...tenant, profile: 'webrtc', codecs: ['opus'] })
    await set('101', { media: 'bypass', dtmf: 'rfc4733' })
    expect(await media()).toMatchObject({ policy: 'bypass', dtmf: 'rfc4733' })
  })
})
