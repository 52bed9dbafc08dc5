/** `GET /settings`: what the process was started with. Of the platform alone; secrets are left out. */
import { Hono } from 'hono'
import type { SettingInForce } from '../../schema/contracts/settings.ts'
import { requiresGlobal } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'

export const settingsRoutes = ({ inForce }: Pick<Platform, 'inForce'>) =>
  new Hono<ControlEnv>().get('/settings', requiresGlobal('settings:view'), (c) =>
    ok(c, { settings: (inForce?.settings ?? []).map(viewOf), notes: inForce?.notes ?? [] }),
  )

const viewOf = ({ name, value, source, allowed, meaning, ...rest }: SettingInForce) => ({
  name,
  value,
  source,
  allowed,
  meaning,
  is_set: rest.isSet,
  is_secret: rest.isSecret,
  when_unset: rest.whenUnset,
})

export type SettingView = ReturnType<typeof viewOf>
