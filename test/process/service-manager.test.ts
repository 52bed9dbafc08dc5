/**
 * The built program under a service manager, as systemd would start it with `Type=notify` and
 * `WatchdogSec=`.
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NotifySocket } from '../support/notify-socket.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

test('it says when it serves, that its event loop turns, when it reads settings again, and when it stops', async () => {
  const socket = await NotifySocket.open(folder)
  onTestFinished(() => socket.close())
  const { child, ended, line, complaints } = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, 'tollgate.db'))),
    NOTIFY_SOCKET: socket.path,
    WATCHDOG_USEC: '200000',
    DRAIN_SECONDS: '5',
  })
  await line(/^ready /)
  await socket.next(new RegExp(`^READY=1 \\| MAINPID=${child.pid} \\| STATUS=0 live calls$`))
  await socket.next(/^WATCHDOG=1 \| STATUS=0 live calls$/)
  child.kill('SIGHUP')
  await socket.next(/^RELOADING=1$/)
  await socket.next(/^READY=1 /)
  // A process that stands still is silent; systemd would end it after WatchdogSec.
  child.kill('SIGSTOP')
  await socket.quiet(400)
  child.kill('SIGCONT')
  await socket.next(/^WATCHDOG=1 /)
  child.kill('SIGTERM')
  await socket.next(/^STOPPING=1 \| EXTEND_TIMEOUT_USEC=35000000$/)
  expect(await ended).toBe(0)
  expect(complaints.filter((text) => text.includes('"level":"error"'))).toEqual([])
})

test('the service of the guide and a command in its folder work on the same database', async () => {
  const guide = readFileSync('GUIDE.md', 'utf8')
  const [unit = '', settings = ''] = ['[Unit]', 'DATABASE_PATH='].map(
    (start) =>
      guide
        .split('```ini\n')
        .find((block) => block.startsWith(start))
        ?.split('\n```')[0],
  )
  const valueOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
  // The environment wins over `.env`, and a command has not that of the unit.
  expect(unit).not.toMatch(/^Environment/m)
  expect(settings).toBe(`DATABASE_PATH=/var/lib/${valueOf('StateDirectory')}/tollgate.db`)
  expect(guide).toContain(`/dev/null ${valueOf('WorkingDirectory')}/.env`)
  expect(guide).toContain(`cd ${valueOf('WorkingDirectory')} && sudo -u ${valueOf('User')} npx`)

  const place = mkdtempSync(join(folder, 'service-'))
  writeFileSync(join(place, '.env'), settings.replace('/var/lib/tollgate', place))
  expect(valueOf('ExecStart')).toMatch(/ node_modules\/tollgate\/dist\/main\.js serve$/)
  const service = startProgram(['serve'], {}, place)
  const [, api = ''] = /api=(\S+)/.exec(await service.line(/^ready /)) ?? []
  const command = startProgram(['key', 'create', '--name', 'ci'], {}, place)
  expect(await command.ended).toBe(0)
  const [token = ''] = command.printed
  const headers = { Authorization: `Bearer ${token}` }
  expect((await fetch(`http://${api}/api/v1/health`, { headers })).status).toBe(200)
  service.child.kill('SIGTERM')
  expect(await service.ended).toBe(0)
})
