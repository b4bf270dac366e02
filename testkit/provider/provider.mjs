// An OpenID provider on loopback: client credentials become JWT access tokens. Its settings are JSON in the
// environment, so that no secret stands on a command line: {port, clients, claims, jwks, audience, lifetimeS,
// algorithm}; `claims` are further claims in the tokens of each client.
import Provider from 'oidc-provider';

const given = JSON.parse(process.env.KUSTOS_TEST_PROVIDER);
const issuer = `http://127.0.0.1:${given.port}`;
const resource = 'urn:kustos:kafka';

// `publicKeys` are clients that authenticate by assertions, with their key sets.
const kind = {
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
  id_token_signed_response_alg: given.algorithm,
};

const provider = new Provider(issuer, {
  clients: [
    ...Object.entries(given.clients).map(([client_id, client_secret]) => ({ ...kind, client_id, client_secret })),
    ...Object.entries(given.publicKeys).map(([client_id, keys]) => ({
      ...kind,
      client_id,
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys },
    })),
  ],
  jwks: given.jwks,
  extraTokenClaims: (_context, token) => given.claims[token.clientId],
  scopes: ['kafka'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => ({
        scope: 'kafka',
        audience: given.audience,
        accessTokenTTL: given.lifetimeS,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: given.algorithm } },
      }),
    },
  },
});

// The provider verifies the assertion of a jwt-bearer grant (RFC 7523, section 2.1) as the one of a client (section
// 2.2): signature, issuer and subject, audience, times, and that it is used once.
provider.use(async (ctx, next) => {
  if (ctx.method === 'POST' && ctx.path === '/token') {
    const chunks = [];
    for await (const chunk of ctx.req) chunks.push(chunk);
    const { assertion, ...form } = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
    ctx.req.grant = form.grant_type;
    ctx.req.body = form;
    if (form.grant_type === 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
      ctx.req.body = {
        ...form,
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: assertion,
      };
    }
  }
  return next();
});

// Each grant is a line of the log: `granted` and JSON, with the header of the assertion.
provider.on('grant.success', (ctx) => {
  const { client_assertion: assertion = '' } = ctx.oidc.params;
  const header = JSON.parse(Buffer.from(assertion.split('.')[0] || 'e30', 'base64url').toString());
  console.log(`granted ${JSON.stringify({ client: ctx.oidc.client.clientId, grant: ctx.req.grant, ...header })}`);
});

provider.listen(given.port, '127.0.0.1');
