/** The families of attacks that Tollgate has to stand, each against a started program. */
import { strangers } from './strangers.ts'
import { tenants } from './tenants.ts'
import { tolls } from './tolls.ts'
import type { Attack } from './world.ts'

export const attacks: readonly Attack[] = [...tolls, ...strangers, ...tenants]
