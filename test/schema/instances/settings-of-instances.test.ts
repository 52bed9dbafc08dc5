import { describe, expect, onTestFinished, test } from 'vitest'
import { registerInstance } from '../../../schema/instances/instance-registry.ts'
import {
  type CommonSettings,
  differencesOf,
  settingsOfLiving,
  SettingsOfInstances,
} from '../../../schema/instances/settings-of-instances.ts'
import { ServerNotices } from '../../../schema/changes/server-notices.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { eventually } from '../../support/waiting.ts'

test('only settings that both instances know are compared', () => {
  const instances = new Map<string, CommonSettings>([
    ['a', { EXIT_CODES: '00', UNKNOWN_CALLER: 'deny' }],
    ['b', { EXIT_CODES: '00', NEWER: 'on' }],
    ['c', { EXIT_CODES: '011', UNKNOWN_CALLER: 'deny' }],
  ])
  expect(differencesOf(instances)).toEqual([
    { setting: 'EXIT_CODES', values: { a: '00', b: '00', c: '011' } },
  ])
})

describe.runIf(hasPostgres)('settings of instances that share a database', () => {
  async function opened() {
    const database = await sharedDatabase()
    const store = await database.open()
    const instance = async (name: string, own: CommonSettings) => {
      const place = { address: `http://${name}`, version: '1.0.0' }
      const identity = await registerInstance(store, { name, installId: name, ...place })
      const time = new ManualTime(0)
      const log: { level: string; message: string; fields: unknown }[] = []
      const deps = {
        schedule: time.schedule,
        log: (level: string, message: string, fields?: object) =>
          void log.push({ level, message, fields }),
      }
      const notices = new ServerNotices({ url: database.url, ...deps })
      onTestFinished(() => notices.stop())
      await notices.start()
      const settings = new SettingsOfInstances({ identity, own, connection: notices, ...deps })
      /** As `Heartbeat` tells it. */
      const become = (state: string) =>
        store.statements.execute(`UPDATE node SET state = '${state}' WHERE name = '${name}'`)
      const serve = async (): Promise<void> => {
        await become('serving')
        settings.serving()
        await eventually(async () =>
          expect((await settingsOfLiving(store.statements)).get(name)).toEqual(own),
        )
        await settings.poll()
      }
      return { settings, log, time, become, serve }
    }
    return { instance, store }
  }

  test('an instance that starts with another value is told so before it serves, and the others are, too, until it is the same', async () => {
    const { instance, store } = await opened()
    const a = await instance('sbc-1', { EXIT_CODES: '00', OCS_URL: 'http://a/?x=1' })
    await a.serve()
    expect([a.log, a.settings.differing.size]).toEqual([[], 0])
    const b = await instance('sbc-2', { EXIT_CODES: '00,011', OCS_URL: 'http://a/?x=1' })
    await b.settings.poll()
    const told = {
      level: 'warn',
      message: expect.stringContaining('must be the same on all instances'),
      fields: { EXIT_CODES: { 'sbc-1': '00', 'sbc-2': '00,011' } },
    }
    expect(b.log).toEqual([told])
    expect([...b.settings.differing]).toEqual([
      ['sbc-1', ['EXIT_CODES']],
      ['sbc-2', ['EXIT_CODES']],
    ])
    // It does not serve yet: it changes nothing for the other one.
    await a.settings.poll()
    expect(a.log).toEqual([])
    await b.serve()
    a.time.advance(10_000)
    await eventually(() => expect(a.log).toEqual([told]))
    expect(a.settings.differing.get('sbc-1')).toEqual(['EXIT_CODES'])
    // Told once, however often it is looked at.
    await a.settings.poll()
    expect(a.log).toHaveLength(1)
    await b.become('stopped')
    await a.settings.poll()
    expect([a.log[1]?.level, a.settings.differing.size]).toEqual(['info', 0])
    // The next run of that instance has the same.
    const again = await instance('sbc-2', { EXIT_CODES: '00', OCS_URL: 'http://a/?x=1' })
    await again.settings.poll()
    await again.serve()
    await a.settings.poll()
    expect([again.log, a.log.length]).toEqual([[], 2])
    const rows = store.statements.prepare<{ readonly name: string }>(
      "SELECT name FROM setting WHERE name LIKE 'settings of node %'",
    )
    expect(await rows.all([])).toHaveLength(2)
  })
})
