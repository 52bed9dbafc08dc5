import { expect, onTestFinished, test } from 'vitest'
import { serviceManager } from '../../../engine/commands/service-manager.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { NotifySocket } from '../../support/notify-socket.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { eventually } from '../../support/waiting.ts'

const folder = temporaryFolder()

/** A service manager that watches: it wants to hear something every 10 s. */
async function watched() {
  const socket = await NotifySocket.open(folder)
  onTestFinished(() => socket.close())
  const time = new ManualTime(0)
  const { log, complaints } = noted()
  const environment = {
    PATH: process.env['PATH'],
    NOTIFY_SOCKET: socket.path,
    WATCHDOG_USEC: '10000000',
  }
  const world = { environment, schedule: time.schedule, pid: 4711 }
  return { socket, time, complaints, manager: serviceManager(world, log, () => '12 live calls') }
}

function noted() {
  const complaints: unknown[] = []
  const log = (...words: readonly unknown[]) => void complaints.push(words)
  return { complaints, log }
}

test('a service is ready, is alive twice within each interval of the watchdog, and stops', async () => {
  const { socket, time, manager, complaints } = await watched()
  manager.ready()
  await socket.next(/^READY=1 \| MAINPID=4711 \| STATUS=12 live calls$/)
  await socket.next(/^WATCHDOG=1 \| STATUS=12 live calls$/)
  expect(time.next).toBe(5_000)
  time.advance(5_000)
  await socket.next(/^WATCHDOG=1 /)
  time.advance(5_000)
  await socket.next(/^WATCHDOG=1 /)
  manager.reloading()
  manager.ready()
  await socket.next(/^RELOADING=1$/)
  await socket.next(/^READY=1 /)
  expect(time.waiting).toBe(1)
  manager.stopping(60_000)
  await socket.next(/^STOPPING=1 \| EXTEND_TIMEOUT_USEC=60000000$/)
  expect(complaints).toEqual([])
})

test('without systemd-notify one line says so, and the program goes on', async () => {
  const { complaints, log } = noted()
  const environment = { PATH: folder, NOTIFY_SOCKET: `${folder}/none` }
  const world = { environment, schedule: new ManualTime(0).schedule, pid: 1 }
  const manager = serviceManager(world, log, () => '')
  manager.ready()
  manager.stopping(1_000)
  await eventually(() => expect(complaints).not.toEqual([]))
  expect(complaints).toEqual([
    ['error', 'systemd cannot be notified; is systemd-notify installed?', expect.anything()],
  ])
})

test('a start that waits says why, and asks for more time', async () => {
  const { socket, manager } = await watched()
  manager.starting('waiting for the database server', 60_000)
  await socket.next(/^STATUS=waiting for the database server \| EXTEND_TIMEOUT_USEC=60000000$/)
})
