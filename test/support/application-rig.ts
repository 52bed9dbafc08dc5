/** Call control on sockets, with an application of drachtio-srf as its worker would run it. */
import type Srf from 'drachtio-srf'
import { onTestFinished } from 'vitest'
import {
  WorkerApplication,
  type WorkerApplicationDeps,
} from '../../engine/hooks/application/start-application.ts'
import { startCallRig } from './call-rig.ts'
import type { CallRigOptions } from './call-rig-options.ts'

interface ApplicationRigOptions extends CallRigOptions {
  readonly fallback?: WorkerApplicationDeps['fallback']
}

export async function startApplicationRig(
  application: (srf: Srf) => unknown,
  { fallback = 'continue', ...options }: ApplicationRigOptions = {},
) {
  const rig = await startCallRig({
    withTcp: true,
    applicationMustAnswer: fallback === 'refuse',
    ...options,
  })
  const errors: unknown[] = []
  const secret = 'secret of the worker'
  const worker = await WorkerApplication.create({
    main: Promise.resolve({
      protocol: 'udp',
      host: '127.0.0.1',
      port: rig.server.listeners[0]?.port ?? 0,
      secret,
    }),
    randomSecret: () => 'secret of the door',
    log: () => undefined,
    fallback,
    onError: (error) => void errors.push(error),
    onTaking: (port) => {
      rig.applications.expect(true)
      rig.applications.started({ run: 1, protocol: 'udp', host: '127.0.0.1', port, secret })
    },
  })
  onTestFinished(async () => {
    await worker.stop()
    await rig.stop()
  })
  await worker.startApplication(application)
  await rig.until(() => rig.applications.candidate() !== undefined)
  return { ...rig, worker, errors }
}
