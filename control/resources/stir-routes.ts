/** `/stir/keys`, and the certificates that the API publishes for those who check our signatures. */
import { Hono } from 'hono'
import { z } from 'zod'
import type { StirKeysPort } from '../../schema/contracts/stir.ts'
import { openToAll } from '../auth/requires.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { text } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { resourceRoutes } from './resource-routes.ts'
import { stirKeys, withState } from './stir-keys.ts'

export const stirKeyRoutes = (deps: ChangeDeps) =>
  resourceRoutes(deps, stirKeys, { show: (key) => withState(key, deps.engine.stir) })

/** A name changes with its certificate, so an answer may be kept for long. */
const KEPT = 'public, max-age=86400, immutable'

/** Anybody may check a signature, so the certificates are open to all. */
export const publishedCertificateRoute = (engine: {
  readonly stir: Pick<StirKeysPort, 'publishedCertificate'>
}) =>
  new Hono<ControlEnv>().get(
    '/stir/certificates/:name',
    describeRoute({
      id: 'getPublishedCertificate',
      tag: 'Signed calls',
      summary: 'Get the certificate of a key that signs calls, as `x5u` names it. Public.',
      answer: text('application/pem-certificate-chain', exampleCertificate),
    }),
    openToAll(),
    validate('param', z.object({ name: z.string().max(100) })),
    (c) => {
      const pem = engine.stir.publishedCertificate(c.req.valid('param').name)
      if (pem === undefined) throw notFound('Certificate')
      c.header('Content-Type', 'application/pem-certificate-chain')
      c.header('Cache-Control', KEPT)
      return c.body(pem)
    },
  )

const exampleCertificate = '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n'
