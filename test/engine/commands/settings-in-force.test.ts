import fc from 'fast-check'
import { expect, test } from 'vitest'
import { settings } from '../../../engine/settings.ts'
import { settingsInForce } from '../../../engine/commands/settings-in-force.ts'

const shown = (environment: Readonly<Record<string, string>>, fromFile: readonly string[] = []) =>
  new Map(settingsInForce(environment, fromFile).map((setting) => [setting.name, setting]))

test('a setting is shown with its value, and with the place that it comes from', () => {
  const environment = { DRAIN_SECONDS: '5', LOG_LEVEL: 'warn', BACKUP_KEEP: '' }
  const found = shown(environment, ['LOG_LEVEL'])
  expect(found.get('DRAIN_SECONDS')).toMatchObject({ value: '5', source: 'environment' })
  expect(found.get('LOG_LEVEL')).toMatchObject({ value: 'warn', source: 'file' })
  expect(found.get('BACKUP_KEEP')).toMatchObject({ value: '7', source: 'default', isSet: true })
  expect(found.get('BACKUP_DIR')).toMatchObject({ value: null, source: 'default', isSet: false })
  expect(found.size).toBe(Object.keys(settings).length)
})

test('no secret is shown, and no password of a URL', () => {
  const secrets = Object.values(settings).filter(({ isSecret }) => isSecret)
  const value = fc.string({ minLength: 1, maxLength: 60 }).map((text) => `canary${text}`)
  fc.assert(
    fc.property(value, (text) => {
      const environment = Object.fromEntries(secrets.map(({ name }) => [name, text]))
      const found = settingsInForce(environment, [])
      expect(JSON.stringify(found)).not.toContain('canary')
      expect(found.filter(({ isSecret }) => isSecret).every(({ isSet }) => isSet)).toBe(true)
    }),
  )
  const { value: url } =
    shown({ OCS_URL: 'https://node:canary@ocs.example/x' }).get('OCS_URL') ?? {}
  expect(url).toBe('https://…@ocs.example/x')
})
