/** Serves the console: one page for all its addresses, assets that browsers keep, and the guide. */
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import { userOfCookie } from '../auth/authenticate.ts'
import { openToAll } from '../auth/requires.ts'
import { notFound } from '../http/api-error.ts'
import { type ControlEnv, requestHeader } from '../http/control-env.ts'
import { validate, describeRoute } from '../http/validate.ts'
import type { Asset, ConsoleFiles } from './console-files.ts'
import { firstRequests } from './first-requests.ts'
import { either, type Operation, text } from '../http/operation.ts'

/** Allows nothing inline, nothing of other origins, and no frames. */
const policy = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const pageHeaders = {
  'Content-Security-Policy': policy,
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  'X-Frame-Options': 'DENY',
  // The page names its assets by their hashes: an old one would name those of an old program.
  'Cache-Control': 'no-cache',
}

/** The request of a script takes its answer if both have the same mode. */
const preload = (path: string): string => `<${path}>; rel=preload; as=fetch; crossorigin`

const fileParam = z.strictObject({ file: z.string().max(80) })

/** `files`: undefined while the console has not been built; `frontPage` is shown at `/` then. */
export function consoleRoutes(
  files: ConsoleFiles | undefined,
  frontPage: (c: Context<ControlEnv>) => Response | Promise<Response>,
) {
  const page = (c: Context<ControlEnv>) => {
    if (files === undefined) throw notFound('Console')
    const headers = { ...pageHeaders, Vary: 'Cookie' }
    const user = userOfCookie(c)
    if (user === undefined) return c.html(files.page, 200, headers)
    // The page of one thing asks for other things.
    const screen = c.req.param('item') === undefined ? c.req.param('screen') : ''
    const requests = firstRequests(screen, user.tenantId !== null)
    return c.html(files.signedInPage, 200, { ...headers, Link: requests.map(preload).join(', ') })
  }
  return new Hono<ControlEnv>()
    .get(
      '/',
      describeRoute({
        id: 'getFrontPage',
        tag: 'System',
        summary: 'Get the page of the console',
        answer: text('text/html', '<!doctype html>'),
      }),
      openToAll(),
      (c) => (files === undefined ? frontPage(c) : page(c)),
    )
    .route('/', assetRoute(files))
    .get(
      '/guide',
      describeRoute(pageOperation('getGuide', 'Get the guide for operators as a web page')),
      openToAll(),
      (c) => {
        if (files === undefined) throw notFound('Guide')
        return assetAnswer(c, files.guide, pageHeaders)
      },
    )
    .get(
      '/console',
      describeRoute(pageOperation('getConsole', 'Get the page of the console')),
      openToAll(),
      page,
    )
    .get(
      '/console/:screen',
      describeRoute(pageOperation('getConsoleScreen', 'Get the page of the console at a screen')),
      openToAll(),
      page,
    )
    .get(
      '/console/:screen/:item',
      describeRoute(pageOperation('getConsoleItem', 'Get the page of the console at one thing')),
      openToAll(),
      page,
    )
}

const assetRoute = (files: ConsoleFiles | undefined) =>
  new Hono<ControlEnv>().get(
    '/console/assets/:file',
    describeRoute({
      id: 'getConsoleFile',
      tag: 'System',
      summary: 'Get a file of the console',
      answer: either(text('text/javascript', ''), text('text/css', ''), text('image/svg+xml', '')),
      refusals: [404],
    }),
    openToAll(),
    validate('param', fileParam),
    (c) => {
      const asset = files?.assets.get(c.req.valid('param').file)
      if (asset === undefined) throw notFound('File')
      // The name changes with the content.
      return assetAnswer(c, asset, {
        'Cache-Control': 'public, max-age=31536000, immutable',
      })
    },
  )

const pageOperation = (id: string, summary: string): Operation => ({
  id,
  tag: 'System',
  summary,
  answer: text('text/html', '<!doctype html>'),
  refusals: [404],
})

function assetAnswer(
  c: Context<ControlEnv>,
  asset: Asset,
  headers: Readonly<Record<string, string>>,
): Response {
  const encoding = encodingFor(requestHeader(c, 'accept-encoding') ?? '', ['br', 'gzip'])
  return c.body(asset[encoding], 200, {
    ...headers,
    'Content-Type': asset.contentType,
    Vary: 'Accept-Encoding',
    ...(encoding !== 'plain' && { 'Content-Encoding': encoding }),
  })
}

type Encoding = 'br' | 'gzip'

/** The first of `offered` that the client accepts. */
export function encodingFor<Offered extends Encoding>(
  accepted: string,
  offered: readonly Offered[],
): Offered | 'plain' {
  const names = accepted
    .toLowerCase()
    .split(',')
    .filter((each) => !/;\s*q\s*=\s*0(?:\.0*)?\s*$/.test(each))
    .map((each) => each.split(';')[0]?.trim())
  return offered.find((each) => names.includes(each)) ?? 'plain'
}
