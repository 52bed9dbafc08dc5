import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readConfig } from '../../../engine/config.ts'
import { settings } from '../../../engine/settings.ts'
import { commonSettingNames, commonSettings } from '../../../engine/stores/common-settings.ts'

const key = Buffer.alloc(32, 7)
const of = (environment: Readonly<Record<string, string>>) =>
  commonSettings(readConfig(environment), key)

test('GUIDE.md names the settings that must be the same on all instances, and no other', () => {
  const [, list = ''] = /^- \*\*Settings\*\*(.*)$/m.exec(readFileSync('GUIDE.md', 'utf8')) ?? []
  const names = Object.values(settings).map(({ name }) => name)
  const told = [...list.matchAll(/`([A-Z_]+)`/g)].flatMap(([, name = '']) =>
    names.includes(name as never) ? [name] : [],
  )
  expect([...new Set(told)].toSorted()).toEqual([...commonSettingNames].toSorted())
})

test('each has a value, and a setting of one instance alone has none', () => {
  const own = of({ NODE_NAME: 'sbc-1', SIP_LISTEN: 'udp/10.0.0.1:5060' })
  expect(Object.keys(own).toSorted()).toEqual([...commonSettingNames].toSorted())
  expect(own).toEqual(of({}))
  for (const name of Object.keys(own))
    expect(Object.values(settings).map((s) => s.name)).toContain(name)
})

test.each([
  [{ EXIT_CODES: '00,011' }, { EXIT_CODES: '011, 00' }],
  [{ TRUSTED_SOURCES: '10.0.0.1,10.0.0.2' }, { TRUSTED_SOURCES: '10.0.0.2/32,10.0.0.1/32' }],
  [{ EDGE_PROXIES: '10.0.0.5=acme+globex' }, { EDGE_PROXIES: '10.0.0.5/32=globex+acme' }],
  [{ UNKNOWN_CALLER: 'deny' }, {}],
])('%j is the same as %j', (one, other) => expect(of(one)).toEqual(of(other)))

const long = Array.from({ length: 100 }, (_, index) => `10.0.${index}.0/24`).join()

test.each([
  [{ EXIT_CODES: 'none' }, {}],
  [{ EXIT_CODES: '00' }, { EXIT_CODES: '00,011' }],
  [{ OCS_URL: 'http://a:1' }, { OCS_URL: 'http://a:2' }],
  [{ CDR_RETENTION_DAYS: '30' }, {}],
  [{ JWT_SECRET: 'a secret of one node' }, {}],
  [{ JWT_SECRET: 'a secret of one node' }, { JWT_SECRET: 'another, of the other' }],
  [{ TRUSTED_SOURCES: `${long},10.1.0.0/24` }, { TRUSTED_SOURCES: `${long},10.2.0.0/24` }],
])('%j is not %j', (one, other) => expect(of(one)).not.toEqual(of(other)))

test('no secret and no password is told, and a long list is shortened', () => {
  const told = JSON.stringify(
    of({
      JWT_SECRET: 'a secret of one node',
      PAYMENT_WEBHOOK_SECRET: 'whsec_1',
      OCS_URL: 'http://me:hidden@ocs.example',
      TRUSTED_SOURCES: long,
    }),
  )
  expect(told).not.toMatch(/a secret|whsec_1|hidden/)
  expect(told.length).toBeLessThan(1_500)
  // Without the key of the installation nothing is told of them.
  expect(commonSettings(readConfig({ JWT_SECRET: 'a secret of one node' }))).not.toHaveProperty(
    'JWT_SECRET',
  )
})
